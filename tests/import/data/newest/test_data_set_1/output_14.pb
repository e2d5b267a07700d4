B
14_BitCastJ”·á*