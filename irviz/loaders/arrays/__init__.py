"""Read arrays, parameters and images from files, running nothing in them."""
