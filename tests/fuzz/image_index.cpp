// The index of a set of images, and the checksums beside it.
#include "formats/image_index.h"

#include "fuzz.h"

FUZZ(bytes) {
  static const std::string shard(4096, 'x');
  const lockstep::fs::path shard_path = lockstep::as_file(shard, "shard");
  const lockstep::ImageShards shards(lockstep::as_file(bytes),
                                     {{shard_path, 4096}, {"/absent", 100}}, 10);
  for (int64_t i = 0; i < shards.size(); ++i) {
    lockstep::use(shards.label(i));
    lockstep::use(std::string(shards.name(i)));
    const lockstep::ImagePlace place = shards.place(i);
    if (!shards.has_shard(place.shard)) continue;
    for (const std::byte byte : shards.bytes(i)) lockstep::use(byte);
  }
}
