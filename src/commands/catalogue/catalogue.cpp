#include "commands/catalogue/catalogue.h"

#include "commands/catalogue/ranks.h"
#include "commands/catalogue/reference.h"
#include "commands/corpora/prepare.h"
#include "commands/corpora/tokenize.h"
#include "commands/hosts/agent.h"
#include "commands/hosts/attach.h"
#include "commands/hosts/cluster.h"
#include "commands/hosts/doctor.h"
#include "commands/hosts/fetch.h"
#include "commands/hosts/files.h"
#include "commands/hosts/job.h"
#include "commands/hosts/jobs.h"
#include "commands/hosts/launch.h"
#include "commands/hosts/logs.h"
#include "commands/hosts/netlab.h"
#include "commands/hosts/notify.h"
#include "commands/hosts/plan.h"
#include "commands/hosts/probe.h"
#include "commands/hosts/resume.h"
#include "commands/hosts/stop.h"
#include "commands/models/classify.h"
#include "commands/models/evaluate.h"
#include "commands/models/export.h"
#include "commands/models/score.h"
#include "commands/models/score_pairs.h"
#include "commands/models/serve.h"
#include "commands/models/translate.h"
#include "commands/runs/average.h"
#include "commands/runs/checkpoint.h"
#include "commands/runs/compare.h"
#include "commands/runs/demo.h"
#include "commands/runs/new.h"
#include "commands/runs/report.h"
#include "commands/runs/sweep.h"
#include "commands/runs/tensorboard.h"
#include "commands/runs/trace.h"
#include "commands/runs/train.h"
#include "commands/runs/watch.h"

namespace lockstep {

const Catalogue<Command>& commands() {
  static const Catalogue<Command> catalogue = [] {
    Catalogue<Command> c("command");
    c.add("demo", demo, "a first run: fetch a corpus, train on this machine, translate");
    c.add("new", new_run, "a configuration that fits your data and this machine");
    c.add("prepare", prepare, "make a corpus ready for training");
    c.add("train", train, "train what a configuration describes, as one rank");
    c.add("launch", launch, "start several ranks of a command, here or on hosts");
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
    c.add("doctor", doctor, "are the hosts of a run, or this machine, fit for it?");
    c.add("plan", plan, "predict step time, traffic, memory and cost of a run");
    c.add("watch", watch, "what every rank of a run does right now, or their logs");
    c.add("fetch", fetch, "bring a run together here from its hosts: results, logs, checkpoints");
    c.add("sweep", sweep, "many runs: a grid of values, set-ups and networks, with repeats");
    c.add("compare", compare, "runs and sweeps side by side, in tables and plots");
    c.add("report", report, "what a run did and how well: a page, Markdown and JSON");
    c.add("trace", trace,
          "all ranks on one timeline, for ui.perfetto.dev; also of a run under way");
    c.add("tensorboard", tensorboard, "your TensorBoard on the events of runs");
    c.add("evaluate", evaluate, "how good a run's model is on a split or a file");
    c.add("translate", translate, "translate lines with a run's model");
    c.add("serve", serve, "translate what is sent by HTTP, many requests in one batch");
    c.add("classify", classify, "the most probable classes of images or texts by a run's model");
    c.add("export", export_model, "a run's model for transformers, CTranslate2 and the edge");
    c.add("average", average, "average the weights of several checkpoints");
    c.add("checkpoint", checkpoint, "look after checkpoints: list, show, verify, diff, prune");
    c.add("score", score, "BLEU, chrF and TER of translations, as sacreBLEU prints them");
    c.add("tokenize", tokenize, "lines to ids or pieces of a vocabulary, and back");
    c.add("score-pairs", score_pairs_command, "log-probability of given translations");
    c.add("netlab", netlab, "virtual hosts on this machine, with the network one asks for");
    c.add("probe", probe, "");  // what doctor and plan start on each host
    c.add("list", list, "what there is: tasks, optimizers, schedules, ...");
    c.add("explain", explain, "the keys of a configuration");
    return c;
  }();
  return catalogue;
}

}  // namespace lockstep
