// ObjectStore for the addresses of kind folder (object_store.h).
#pragma once

#include <memory>

#include "data/store/object_store.h"

namespace lockstep {

std::unique_ptr<ObjectStore> open_folder_store(const StoreAddress& address,
                                               const StoreOptions& options);

}  // namespace lockstep
