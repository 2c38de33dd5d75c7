// The options and the output of `lockstep prepare labelled`.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "commands/corpora/hub_input.h"
#include "commands/shared/command_line.h"
#include "data/labelled/prepare_labelled.h"

namespace lockstep {

class PrepareLabelledCommand {
 public:
  // Adds the subcommand to `app`. Must outlive the parsing of `app`.
  explicit PrepareLabelledCommand(CommandLine& app);

  bool parsed() const { return command_->parsed(); }
  int run();

 private:
  void add_source_options();
  void add_column_options();
  void finish_options();
  void take_data_set(const HubData& data);

  CommandLine* command_;
  PrepareLabelledOptions options_;
  HubInput hub_;
  std::vector<fs::path> train_, validation_, test_;
  bool cased_ = false, uncased_ = false;
  std::string classes_, header_ = "auto", quotes_ = "auto", empty_ = "fail";
};

}  // namespace lockstep
