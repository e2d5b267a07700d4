B
17_AdagradJ˜Šz¾¤.?+m?