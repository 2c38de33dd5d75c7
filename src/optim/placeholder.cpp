// optim
