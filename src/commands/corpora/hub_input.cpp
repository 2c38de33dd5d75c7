#include "commands/corpora/hub_input.h"

#include "base/log.h"
#include "base/text.h"

namespace lockstep {

void HubInput::add_options(CommandLine& command) {
  command.add_option("--subset", subset_,
                     "of hf:datasets/...: the configuration to take, where it has several");
  command.add_option(
      "--splits", splits_,
      "of hf:datasets/...: those to take, such as train,validation=test (ours=theirs)");
}

std::optional<HubData> HubInput::fetch(const std::string& input, HubContent content) const {
  const std::optional<HubReference> reference = hub_reference(input);
  if (!reference) {
    const bool subset = !subset_.empty();
    if (!subset && splits_.empty()) return std::nullopt;
    throw ConfigError("{}: for a data set of the hub (hf:datasets/OWNER/NAME), not {}",
                      subset ? "--subset" : "--splits", input.empty() ? "files" : input);
  }
  if (!reference->dataset) {
    ConfigError error("{}: a model; expected a data set", input);
    error.set_advice("hf:datasets/" + input.substr(3));
    throw error;
  }
  HubData out =
      fetch_hub_data(Hub(HubSettings::from_environment()), {.dataset = *reference,
                                                            .configuration = subset_,
                                                            .splits = hub_split_choices(splits_),
                                                            .content = content});
  for (const HubSplit& split : out.splits) {
    log_info("{}: {} from {}{}", out.name(), split.name, split.files.front(),
             split.files.size() == 1
                 ? ""
                 : fmt::format(" and {} more", with_commas(std::ssize(split.files) - 1)));
  }
  return out;
}

}  // namespace lockstep
