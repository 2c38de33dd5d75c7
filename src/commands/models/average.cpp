#include "commands/models/average.h"

#include <algorithm>

#include "train/checkpoint/average.h"
#include "train/checkpoint/checkpoint.h"
#include "train/folder/run_folder.h"

namespace lockstep {

namespace {

struct AverageArguments {
  std::vector<std::string> sources;
  std::string out, metric;
  int64_t last = 0, best = 0;
  AverageRequest request;
};

// Returns the first `count` of the checkpoints found in a run.
std::vector<fs::path> take(std::vector<fs::path> found, int64_t count, const std::string& what) {
  if (static_cast<int64_t>(found.size()) < count) {
    DataError error("{}: expected {} complete checkpoints, found {}", what, count, found.size());
    error.set_advice("checkpoint.keep and checkpoint.keep_best say how many a run keeps");
    throw error;
  }
  found.resize(static_cast<std::size_t>(count));
  return found;
}

std::vector<fs::path> choose_checkpoints(const AverageArguments& a) {
  RunFolder run(a.sources.front());
  bool is_run = a.sources.size() == 1 && fs::exists(run.config());
  if (is_run && a.last == 0 && a.best == 0) {
    throw ConfigError("average: {} is a run: expected --last N or --best N", a.sources.front());
  }
  if (!is_run && (a.last > 0 || a.best > 0)) {
    throw ConfigError("average: --last and --best choose among the checkpoints of one run");
  }
  if (a.last > 0) return take(complete_checkpoints(run.checkpoints()), a.last, "--last");
  if (a.best > 0) return take(best_checkpoints(run.checkpoints(), a.metric), a.best, "--best");
  std::vector<fs::path> out;
  for (const std::string& source : a.sources) {
    fs::path checkpoint = fs::path(source).lexically_normal();
    if (!checkpoint.has_filename()) checkpoint = checkpoint.parent_path();  // removes a final '/'
    if (!fs::exists(checkpoint)) throw DataError("{}: there is no such checkpoint", source);
    out.push_back(checkpoint);
  }
  return out;
}

void check_shares(const AverageRequest& request) {
  const std::vector<double>& shares = request.shares;
  if (!shares.empty() && shares.size() != request.checkpoints.size()) {
    throw ConfigError("--shares: expected {}, one for each checkpoint, got {}",
                      request.checkpoints.size(), shares.size());
  }
  if (std::any_of(shares.begin(), shares.end(), [](double share) { return !(share > 0); })) {
    throw ConfigError("--shares: expected numbers > 0");
  }
}

}  // namespace

int average(const Arguments& arguments) {
  AverageArguments a;
  CommandLine app(
      "Averages the weights of several checkpoints into a run folder that evaluate, translate and\n"
      "run.load_model take.",
      "lockstep average");
  app.add_option("sources", a.sources, "RUN, or checkpoints as RUN/checkpoints/step_900")
      ->required();
  auto last =
      app.add_option("--last", a.last, "the newest so many checkpoints of the run")->positive();
  auto best = app.add_option("--best", a.best, "the best so many of the run (checkpoint.keep_best)")
                  ->positive()
                  ->excludes(last);
  app.add_option("--metric", a.metric, "that says which are best; else the run's first")
      ->needs(best);
  app.add_option("--shares", a.request.shares, "of the checkpoints in their order, as 1,1,2")
      ->delimiter(',');
  app.add_flag("--moving", a.request.moving, "of their moving averages, where they have some");
  app.add_option("--out", a.out, "the folder to write")->required();
  if (!app.parse(arguments)) return kExitOk;

  a.request.checkpoints = choose_checkpoints(a);
  check_shares(a.request);
  write_average(a.request, a.out);
  for (const fs::path& checkpoint : a.request.checkpoints) fmt::print("{}\n", checkpoint.string());
  fmt::print("averaged into {}\n", a.out);
  return kExitOk;
}

}  // namespace lockstep
