#include "optim/catalogue.h"

#include "optim/adam.h"

namespace lockstep {

const Catalogue<OptimizerMaker>& optimizers() {
  static const Catalogue<OptimizerMaker> catalogue = [] {
    Catalogue<OptimizerMaker> c("optimizer");
    c.add("adam", make_adam_config, "Kingma and Ba 2015; weight decay is added to the gradient");
    c.add("adamw", make_adamw_config, "Loshchilov and Hutter 2019; decoupled weight decay");
    return c;
  }();
  return catalogue;
}

}  // namespace lockstep
