#include "train/parts/replicas.h"

#include <algorithm>
#include <map>

#include "base/text.h"
#include "dist/collectives/fingerprint.h"
#include "train/parts/agreement.h"

namespace lockstep {

namespace {

std::string ranks_text(const std::vector<int>& ranks, const std::vector<std::string>& names) {
  std::vector<std::string> out;
  for (int rank : ranks) out.push_back(names[static_cast<std::size_t>(rank)]);
  return join(out, ", ");
}

std::string describe(const UnequalRanks& unequal, const std::vector<std::string>& names) {
  const std::string arrays = join(unequal.arrays, ", ");
  const std::string ranks = ranks_text(unequal.ranks, names);
  if (unequal.good < 0) return fmt::format("{} hold different bits in {}", ranks, arrays);
  const std::size_t others = names.size() - unequal.ranks.size();
  return fmt::format("{} hold{} other bits than the {} other ranks in {}", ranks,
                     unequal.ranks.size() == 1 ? "s" : "", others, arrays);
}

}  // namespace

UnequalRanks find_unequal(World& world, std::span<const Replica> arrays) {
  UnequalRanks out;
  if (world.size() == 1) return out;
  std::string mine;
  for (const Replica& array : arrays) mine += fmt::format("{:016x}\n", fingerprint(array.data));
  const std::vector<std::string> all = world.all_gather_strings(mine);
  std::map<std::string, std::vector<int>> groups;
  for (std::size_t rank = 0; rank < all.size(); ++rank) {
    groups[all[rank]].push_back(static_cast<int>(rank));
  }
  if (groups.size() == 1) return out;
  const auto largest =
      std::ranges::max_element(groups, {}, [](const auto& group) { return group.second.size(); });
  const bool majority = 2 * largest->second.size() > all.size();
  if (majority) out.good = largest->second.front();
  const std::string& reference = majority ? largest->first : all.front();
  for (std::size_t rank = 0; rank < all.size(); ++rank) {
    if (all[rank] != reference) out.ranks.push_back(static_cast<int>(rank));
  }
  if (!majority) out.ranks.insert(out.ranks.begin(), 0);
  const std::vector<std::string> expected = split(reference, '\n');
  for (std::size_t i = 0; i < arrays.size(); ++i) {
    const bool differs = std::ranges::any_of(
        all, [&](const std::string& text) { return split(text, '\n')[i] != expected[i]; });
    if (differs) out.arrays.push_back(arrays[i].name);
  }
  out.text = describe(out, world.all_gather_strings(rank_and_host(world)));
  return out;
}

void mend(World& world, std::span<const Replica> arrays, const UnequalRanks& unequal) {
  for (const Replica& array : arrays) {
    if (std::ranges::find(unequal.arrays, array.name) == unequal.arrays.end()) continue;
    world.broadcast(array.data, unequal.good);
  }
}

MachineError unequal_error(const UnequalRanks& unequal) {
  MachineError error("{}", unequal.text);
  error.set_cause("ranks that start from equal weights and reduce gradients stay equal bit by bit");
  error.set_advice(
      "look for a bad machine or different versions; resume from a checkpoint before this step");
  return error;
}

}  // namespace lockstep
