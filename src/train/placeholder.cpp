// train
