B10_DetJСкЂЅmjlА
5w>6мA