#include "optim/optimizers/catalogue.h"

#include "optim/optimizers/adam.h"
#include "optim/optimizers/novograd.h"
#include "optim/optimizers/sgd.h"

namespace lockstep {

const Catalogue<OptimizerMaker>& optimizers() {
  static const Catalogue<OptimizerMaker> catalogue = [] {
    Catalogue<OptimizerMaker> c("optimizer");
    c.add("adam", make_adam_config, "Kingma and Ba 2015; weight decay is added to the gradient");
    c.add("adamw", make_adamw_config, "Loshchilov and Hutter 2019; decoupled weight decay");
    c.add("lazy_adam", make_lazy_adam_config, "Adam that skips unused rows of lookup tables");
    c.add("novograd", make_novograd_config, "Ginsburg et al. 2019; second moments layer by layer");
    c.add("sgd", make_sgd_config, "with momentum, as torch.optim.SGD");
    return c;
  }();
  return catalogue;
}

}  // namespace lockstep
