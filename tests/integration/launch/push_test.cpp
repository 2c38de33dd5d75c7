// `launch --push`: hosts that share nothing with the laptop get what a job needs, and train.
#include <gtest/gtest.h>

#include <set>
#include <thread>

#include "support/expect_says.h"
#include "support/instances.h"
#include "support/tiny_runs.h"

namespace lockstep {
namespace {

using std::chrono::seconds;

std::string bytes_of(std::size_t count, uint32_t state) {
  std::string out(count, '\0');
  for (char& c : out) c = static_cast<char>((state = state * 1664525 + 1013904223) >> 24);
  return out;
}

// The laptop's folder is work/ of the suite's: tiny.toml and data/corpus, which has one large file
// more. The hosts begin with the program, so that not every test copies half a gigabyte.
class PushTest : public TinyRuns {
 protected:
  static constexpr std::size_t kLarge = 12 << 20;

  static void SetUpTestSuite() {
    TinyRuns::SetUpTestSuite();
    const fs::path work = folder_->path() / "work";
    fs::create_directories(work / "data");
    fs::rename(folder_->path() / "corpus", work / "data/corpus");
    write_file(work / "data/corpus/large", bytes_of(kLarge, 1));
    write_tiny_config(work, "data/corpus");
  }

  static ApartOptions lab(const std::vector<std::string>& names = {"a", "b"}) {
    return {.names = names, .program = ApartProgram::kSetUp};
  }

  // Runs `lockstep launch --push WORDS` in a folder of the laptop's.
  std::pair<int, std::string> push(HostsApart& hosts, const std::string& words,
                                   const std::string& folder = "work") const {
    return hosts.run("control", push_command(words, folder), seconds(240));
  }
  std::string push_command(const std::string& words, const std::string& folder = "work") const {
    return fmt::format(
        "mkdir -p '{0}' && cd '{0}' && XDG_CACHE_HOME='{1}' OMP_NUM_THREADS=1 exec '{2}' launch "
        "--push {3}",
        run(folder).string(), run("cache").string(), LOCKSTEP_PROGRAM, words);
  }
  // Runs a shell command as root in the home of a host's user.
  static std::pair<int, std::string> at_home(HostsApart& hosts, const std::string& host,
                                             const std::string& shell) {
    return hosts.run(host, fmt::format("cd {} && {}", hosts.home(host).string(), shell),
                     seconds(60));
  }
};

TEST_F(PushTest, TrainsFromAFolderThatTheHostsHaveNeverSeen) {
  SKIP_WITHOUT_VIRTUAL_HOSTS();
  HostsApart hosts(lab({"a", "b", "c"}));
  write_instances(hosts, run("instances.json"));
  const std::string words = "--instances ../instances.json -- train tiny.toml training.steps=4 ";
  uint64_t before = hosts.lab().counts(kControlHost).bytes_in;
  const auto [code, said] = push(hosts, words + "run.folder=runs/one");
  ASSERT_EQ(code, 0) << said;
  expect_says(said, "tiny.toml: ");
  expect_says(said, "data.corpus = data/corpus: ");
  expect_says(said, " in ~/lockstep/work\n");
  expect_says(said, "lockstep launch: a: ~/lockstep/work: ");
  expect_says(said, " s, from b\n");
  const double sent = static_cast<double>(hosts.lab().counts(kControlHost).bytes_in - before);
  EXPECT_LT(sent, 1.4 * kLarge) << "the laptop's line carries the corpus once";
  for (const char* host : {"a", "b", "c"}) {
    EXPECT_EQ(read_file(hosts.file(host, "lockstep/work/data/corpus/large")), bytes_of(kLarge, 1));
    EXPECT_TRUE(fs::exists(hosts.file(host, "lockstep/work/runs/one/checkpoints"))) << host;
  }
  EXPECT_EQ(metrics_of(hosts.file("a", "lockstep/work/runs/one"), "step").size(), 4u);
  expect_says(read_file(run("work/runs/one/launch.jsonl")), "first_step");

  before = hosts.lab().counts(kControlHost).bytes_in;
  const auto [again, said_again] = push(hosts, words + "run.folder=runs/two");
  ASSERT_EQ(again, 0) << said_again;
  expect_says(said_again, "c: ~/lockstep/work: ");
  expect_says(said_again, "none changed");
  EXPECT_LT(hosts.lab().counts(kControlHost).bytes_in - before, 1u << 20);
  EXPECT_EQ(push(hosts, words + "run.folder=runs/one").first, 2) << "it holds a run";
}

TEST_F(PushTest, GivesInputsOfOtherFoldersAPlaceAndThePathsTheirNames) {
  SKIP_WITHOUT_VIRTUAL_HOSTS();
  HostsApart hosts(lab());
  fs::create_directories(run("models/first"));
  write_file(run("models/first/weights.safetensors"), "weights");
  const std::string corpus = run("work/data/corpus").string();
  const auto [code, said] =
      push(hosts,
           fmt::format("-H a,b --cwd '~/elsewhere' -- train ../work/tiny.toml --dry-run "
                       "data.corpus={} run.load_model=../models/first run.plan=/no/plan",
                       corpus),
           "empty");
  // Nothing is left out: what is not here must be there.
  EXPECT_EQ(code, 4) << said;
  expect_says(said, "run.plan = /no/plan: not here, so the hosts must have it");
  expect_says(said, "2 of 2 hosts could not be made ready");
  expect_says(said, "a: run.plan = /no/plan is neither here nor there");
  expect_says(said, "b: run.plan = /no/plan is neither here nor there");

  hosts.run("a", "mkdir /no; touch /no/plan");
  hosts.run("b", "mkdir /no; touch /no/plan");
  const auto [done, printed] =
      push(hosts,
           fmt::format("-H a,b --cwd '~/elsewhere' -- train ../work/tiny.toml --dry-run "
                       "data.corpus={} run.load_model=../models/first run.plan=/no/plan",
                       corpus),
           "empty");
  ASSERT_EQ(done, 0) << printed;
  expect_says(printed, "in ~/elsewhere as inputs/corpus-");
  expect_says(printed, "corpus = \"inputs/corpus-");
  expect_says(printed, "load_model = \"inputs/first-");
  expect_says(printed, "plan = \"/no/plan\"");
  EXPECT_FALSE(fs::exists(hosts.file("b", "lockstep/empty")));
  std::set<std::string> names;
  for (const auto& entry : fs::directory_iterator(hosts.file("b", "elsewhere/inputs"))) {
    names.insert(entry.path().filename().string().substr(0, 5));
  }
  EXPECT_EQ(names, (std::set<std::string>{"corpu", "first", "tiny-"}));
}

TEST_F(PushTest, TakesARecipeByItsNameAndHostsThatPrintAtLogin) {
  SKIP_WITHOUT_VIRTUAL_HOSTS();
  HostsApart hosts(lab());
  for (const char* host : {"a", "b"}) {
    write_file(hosts.file(host, ".bashrc"),
               "echo free 1; echo missing you; echo installed; echo; echo beware of the dog >&2\n");
  }
  const auto [code, said] = push(
      hosts, "-H a:1,b:auto -- train translation/quickstart --dry-run data.corpus=data/corpus");
  ASSERT_EQ(code, 0) << said;
  expect_says(said, "as inputs/quickstart-");
  expect_says(said, "b: ~/lockstep/work: ");
  expect_says(said, "lockstep launch: b: 1 rank");
  expect_says(said, "d_model = ");
}

TEST_F(PushTest, SaysOfAllHostsAtOnceWhatIsWrongWithThem) {
  SKIP_WITHOUT_VIRTUAL_HOSTS();
  HostsApart hosts({.names = {"a", "b", "c", "d", "e"}, .program = ApartProgram::kNone});
  const std::string pretend = "cat >/usr/local/bin/{0}; chmod 755 /usr/local/bin/{0}";
  hosts.run("a", "printf '#!/bin/sh\\ncase $1 in -s) echo Linux ;; *) echo riscv64 ;; esac\\n' |" +
                     fmt::format(fmt::runtime(pretend), "uname"));
  hosts.run("b", "printf '#!/bin/sh\\necho glibc 2.17\\n' |" +
                     fmt::format(fmt::runtime(pretend), "getconf"));
  at_home(hosts, "c", "mkdir .lockstep && mount -t tmpfs -o size=40m,mode=777 none .lockstep");
  at_home(hosts, "d", "chown root:root . && chmod 755 .");
  at_home(hosts, "e", "mount --bind . $PWD && mount -o remount,bind,ro $PWD");
  const auto [code, said] = push(hosts, "-H a,b,c,d,e -- train tiny.toml");
  EXPECT_EQ(code, 4) << said;
  expect_says(said, "5 of 5 hosts could not be made ready");
  expect_says(said, "a: it is a Linux riscv64, the program is for Linux ");
  expect_says(said, "b: its C library is glibc 2.17, the program needs 2.");
  expect_says(said, "c: its disk has ");
  expect_says(said, "d: its home /home/staff/dora cannot be written: Permission denied");
  expect_says(said, "e: its home /home/eva cannot be written: Read-only file system");
  EXPECT_EQ(said.find("exited with code"), std::string::npos) << said;
}

TEST_F(PushTest, LeavesAHostOutWhereEnoughOthersAreLeft) {
  SKIP_WITHOUT_VIRTUAL_HOSTS();
  HostsApart hosts(lab());
  const std::string folder = hosts.home("b") / "lockstep/work";
  hosts.run("b", "mkdir -p " + folder);  // root's
  const std::string words = "-H a,b {} -- train tiny.toml --dry-run";
  const auto [code, said] = push(hosts, fmt::format(fmt::runtime(words), ""));
  EXPECT_EQ(code, 4) << said;
  expect_says(said, "b: " + folder + " cannot be written: Permission denied");
  const auto [done, printed] = push(hosts, fmt::format(fmt::runtime(words), "--min-hosts 1"));
  EXPECT_EQ(done, 0) << printed;
  expect_says(printed, "left out: b: " + folder + " cannot be written");
}

TEST_F(PushTest, MendsWhatChangedOnAHostAndALibraryThatIsMissing) {
  SKIP_WITHOUT_VIRTUAL_HOSTS();
  HostsApart hosts(lab());
  const std::string words = "-H a,b -- train tiny.toml --dry-run";
  ASSERT_EQ(push(hosts, words).first, 0);
  at_home(hosts, "b",
          "printf x | dd of=lockstep/work/data/corpus/large bs=1 seek=5000000 conv=notrunc");
  at_home(hosts, "b", "rm .lockstep/*/lib/libc10.so; chown -R ben .lockstep");
  const auto [failed, lacking] = hosts.run(
      "control",
      fmt::format("'{}' launch -H a,b --cwd '~/lockstep/work' -- list tasks", LOCKSTEP_PROGRAM),
      seconds(60));
  EXPECT_EQ(failed, 4) << lacking;
  expect_says(lacking, "error: cannot load liblockstep_computing.so: libc10.so: cannot open");
  const auto [code, said] = push(hosts, words);
  ASSERT_EQ(code, 0) << said;
  expect_says(said, "a: ~/lockstep/work: ");
  expect_says(said, "b: data/corpus/large has other contents there: sent again");
  expect_says(said, "b: lockstep ");
  EXPECT_EQ(read_file(hosts.file("b", "lockstep/work/data/corpus/large")), bytes_of(kLarge, 1));
}

TEST_F(PushTest, ASecondJobDoesNotChangeWhatTheFirstReads) {
  SKIP_WITHOUT_VIRTUAL_HOSTS();
  HostsApart hosts(lab());
  auto first =
      hosts.start("control", {"/bin/sh", "-c",
                              push_command("-H a,b -- train tiny.toml training.steps=10000000 "
                                           "checkpoint.every=0 run.folder=runs/first")});
  first->expect("  loss ");
  // The same files serve two jobs.
  const std::string second = "-H a,b -- train tiny.toml training.steps=2 run.folder=runs/second";
  const auto [code, said] = push(hosts, second);
  EXPECT_EQ(code, 0) << said;
  const std::string before = read_file(run("work/tiny.toml"));
  write_file(run("work/tiny.toml"), before + "# another\n");
  const auto [refused, why] = push(hosts, second);
  write_file(run("work/tiny.toml"), before);
  EXPECT_EQ(refused, 4) << why;
  expect_says(why, "2 of 2 hosts could not be made ready");
  expect_says(why, "b: a job that runs there (process ");
  expect_says(why, "reads tiny.toml, which is another now");
  expect_says(why, "--cwd '~/lockstep/another'");
  first->signal(SIGTERM);
  EXPECT_EQ(first->wait(seconds(60)), 143) << first->output();
}

// While the first one's files are on their way nothing runs there yet that reads them.
TEST_F(PushTest, ASecondLaunchWaitsUntilTheFirstOneTrains) {
  SKIP_WITHOUT_VIRTUAL_HOSTS();
  HostsApart hosts(lab());
  const std::string own = read_file(run("work/tiny.toml"));
  fs::create_directories(run("same-place"));
  write_file(run("same-place/tiny.toml"), own + "# another\n");
  auto first = hosts.start("control", {"/bin/sh", "-c",
                                       push_command("-H a,b -- train tiny.toml run.folder=runs/a "
                                                    "training.steps=10000000 checkpoint.every=0")});
  first->expect("data.corpus = ");
  const auto [refused, why] =
      push(hosts,
           "-H b,a --cwd '~/lockstep/work' -- train tiny.toml run.folder=runs/b "
           "data.corpus=../work/data/corpus",
           "same-place");
  EXPECT_EQ(refused, 4) << why;
  expect_says(why, "waits for another launch that brings its files to ~/lockstep/work");
  expect_says(why, "reads tiny.toml, which is another now");
  EXPECT_EQ(read_file(hosts.file("a", "lockstep/work/tiny.toml")), own);
  first->signal(SIGTERM);
  EXPECT_EQ(first->wait(seconds(60)), 143) << first->output();
}

// What somebody brought to the hosts by hand, or what changed there since.
TEST_F(PushTest, NamesTheHostAndTheFileWhoseCorpusIsAnother) {
  SKIP_WITHOUT_VIRTUAL_HOSTS();
  HostsApart hosts(lab());
  ASSERT_EQ(push(hosts, "-H a,b -- train tiny.toml --dry-run").first, 0);
  const fs::path there = hosts.file("b", "lockstep/work");
  write_tiny_text(there, "train", 500, 7);
  write_tiny_text(there, "dev", 30, 8);
  const auto [made, words] =
      at_home(hosts, "b",
              "cd lockstep/work && rm -r data && ../../.lockstep/current/lockstep prepare text "
              "train.en train.de "
              "--dev dev.en dev.de --out data/corpus --vocab 64 && chown -R ben data");
  ASSERT_EQ(made, 0) << words;
  const auto [code, said] = hosts.run(
      "control",
      fmt::format("cd '{}' && OMP_NUM_THREADS=1 '{}' launch -H a,b --cwd '~/lockstep/work' "
                  "--program-on-hosts '~/.lockstep/current/lockstep' -- train tiny.toml "
                  "run.folder=runs/x",
                  run("work").string(), LOCKSTEP_PROGRAM),
      seconds(120));
  EXPECT_EQ(code, 2) << said;
  expect_says(said, "the data of rank 1 on b is not that of rank 0 on a");
  expect_says(said, "rank 1 on b has: subword.model: ");
}

TEST_F(PushTest, AJobThatGoesOnByItselfIsPushedAsWell) {
  SKIP_WITHOUT_VIRTUAL_HOSTS();
  HostsApart hosts(lab());
  const auto [code, said] =
      push(hosts,
           "--detach -H a,b -- train ../work/tiny.toml training.steps=3 run.folder=runs/alone "
           "data.corpus=../work/data/corpus",
           "other");
  ASSERT_EQ(code, 0) << said;
  expect_says(said, "lockstep launch: b: ~/lockstep/other: ");
  const fs::path metrics = hosts.file("a", "lockstep/other/runs/alone/checkpoints/step_3/DONE");
  const auto end = std::chrono::steady_clock::now() + seconds(120);
  while (!fs::exists(metrics) && std::chrono::steady_clock::now() < end) {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  EXPECT_TRUE(fs::exists(metrics)) << said;
}

}  // namespace
}  // namespace lockstep
