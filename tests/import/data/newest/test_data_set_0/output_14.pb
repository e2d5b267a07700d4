B
14_BitCastJraû