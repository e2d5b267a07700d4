B
17_AdagradJ™ª£>Yúä>±®š?5ƒw¾