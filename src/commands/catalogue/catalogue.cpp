#include "commands/catalogue/catalogue.h"

#include "commands/catalogue/demo.h"
#include "commands/catalogue/ranks.h"
#include "commands/corpora/prepare.h"
#include "commands/corpora/score.h"
#include "commands/corpora/tokenize.h"
#include "commands/hosts/agent.h"
#include "commands/hosts/attach.h"
#include "commands/hosts/cluster.h"
#include "commands/hosts/fetch.h"
#include "commands/hosts/files.h"
#include "commands/hosts/job.h"
#include "commands/hosts/jobs.h"
#include "commands/hosts/logs.h"
#include "commands/hosts/netlab.h"
#include "commands/hosts/notify.h"
#include "commands/hosts/resume.h"
#include "commands/hosts/stop.h"
#include "commands/reports/compare.h"
#include "commands/reports/report.h"
#include "commands/reports/tensorboard.h"
#include "commands/reports/trace.h"
#include "commands/reports/watch.h"
#include "commands/shared/computing.h"

namespace lockstep {

namespace {

void add_computing(Catalogue<Command>& to, const std::string& name, const std::string& help) {
  const auto run = [name](const Arguments& arguments) {
    Arguments words{name};
    words.insert(words.end(), arguments.begin(), arguments.end());
    return load_computing()(words);
  };
  to.add(name, run, help);
}

}  // namespace

const Catalogue<Command>& commands() {
  static const Catalogue<Command> catalogue = [] {
    Catalogue<Command> c("command");
    c.add("demo", demo, "a first run: fetch a corpus, train on this machine, translate");
    add_computing(c, "new", "a configuration that fits your data and this machine");
    c.add("prepare", prepare, "make a corpus ready for training");
    add_computing(c, "train", "train what a configuration describes, as one rank");
    add_computing(c, "launch", "start several ranks of a command, here or on hosts");
    c.add("agent", agent, "");    // what launch starts on each host
    c.add("ranks", ranks, "");    // what starts the ranks of a host
    c.add("notify", notify, "");  // what launch --notify starts here
    c.add("files", files, "");    // what launch --push asks on each host
    c.add("jobs", list_jobs, "the jobs that launch --detach started, and how they are");
    c.add("attach", attach, "what a job prints, until it ends");
    c.add("logs", logs, "what a job, or one of its ranks, printed");
    c.add("stop", stop_job, "a job saves a checkpoint and ends");
    c.add("resume", resume_job, "a job goes on, also without the host of its launcher");
    c.add("job", job_on_host, "");  // what these start on each host
    c.add("cluster", cluster, "list, enter, check and set up hosts, run commands on them");
    add_computing(c, "doctor", "are the hosts of a run, or this machine, fit for it?");
    add_computing(c, "plan", "predict step time, traffic, memory and cost of a run");
    c.add("watch", watch, "what every rank of a run does right now, or their logs");
    c.add("fetch", fetch, "bring a run together here from its hosts: results, logs, checkpoints");
    add_computing(c, "sweep", "many runs: a grid of values, set-ups and networks, with repeats");
    c.add("compare", compare, "runs and sweeps side by side, in tables and plots");
    c.add("report", report, "what a run did and how well: a page, Markdown and JSON");
    c.add("trace", trace,
          "all ranks on one timeline, for ui.perfetto.dev; also of a run under way");
    c.add("tensorboard", tensorboard, "your TensorBoard on the events of runs");
    add_computing(c, "evaluate", "how good a run's model is on a split or a file");
    add_computing(c, "translate", "translate lines with a run's model");
    add_computing(c, "serve", "translate what is sent by HTTP, many requests in one batch");
    add_computing(c, "classify", "the most probable classes of images or texts by a run's model");
    add_computing(c, "export", "a run's model for transformers, CTranslate2 and the edge");
    add_computing(c, "average", "average the weights of several checkpoints");
    add_computing(c, "checkpoint", "look after checkpoints: list, show, verify, diff, prune");
    c.add("score", score, "BLEU, chrF and TER of translations, as sacreBLEU prints them");
    c.add("tokenize", tokenize, "lines to ids or pieces of a vocabulary, and back");
    add_computing(c, "score-pairs", "log-probability of given translations");
    c.add("netlab", netlab, "virtual hosts on this machine, with the network one asks for");
    add_computing(c, "probe", "");  // what doctor and plan start on each host
    add_computing(c, "list", "what there is: tasks, optimizers, schedules, ...");
    add_computing(c, "explain", "the keys of a configuration");
    return c;
  }();
  return catalogue;
}

}  // namespace lockstep
