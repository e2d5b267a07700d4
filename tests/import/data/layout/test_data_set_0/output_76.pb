B76_ReduceLogSumJצת@Wמ@M
@