// Adds data sets of the Hugging Face hub to the inputs of `lockstep prepare`.
#pragma once

#include <optional>
#include <string>

#include "commands/shared/command_line.h"
#include "data/fetch/hub_data.h"

namespace lockstep {

class HubInput {
 public:
  // Adds --subset and --splits. Must outlive the parsing of the command.
  void add_options(CommandLine& command);

  // Fetches the data set that `input` names (hf:datasets/OWNER/NAME[@REVISION]) and says what was
  // taken; nothing for other inputs. Throws ConfigError for a model, for the options without a data
  // set, and what fetch_hub_data() throws.
  std::optional<HubData> fetch(const std::string& input, HubContent content) const;

 private:
  std::string subset_, splits_;
};

}  // namespace lockstep
