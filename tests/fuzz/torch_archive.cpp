// A zip archive with a pickle and storages, as torch.save writes it.
#include "formats/weight_files.h"
#include "fuzz.h"

FUZZ(bytes) {
  const lockstep::TorchArchive archive(lockstep::as_file(bytes));
  for (const lockstep::TensorEntry& entry : archive.entries()) {
    for (const std::byte byte : entry.data) lockstep::use(byte);
  }
}
