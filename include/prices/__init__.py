"""Price books of clouds: how they bill, files of users, and the list prices of libcloud."""
