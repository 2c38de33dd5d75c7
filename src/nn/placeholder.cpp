// nn
