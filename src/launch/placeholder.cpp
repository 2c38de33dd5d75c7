// launch
