// ObjectStore for the addresses of kind s3 (object_store.h).
#pragma once

#include <memory>

#include "data/store/object_store.h"

namespace lockstep {

std::unique_ptr<ObjectStore> open_s3_store(const StoreAddress& address,
                                           const StoreOptions& options);

}  // namespace lockstep
