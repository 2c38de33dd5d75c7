// `lockstep prepare wmt16-en-de` as a user runs it, on archives laid out as WMT's.
#include <gtest/gtest.h>
#include <sys/mount.h>

#include <algorithm>
#include <string>

#include "data/manifest/manifest.h"
#include "support/local_server.h"
#include "support/program.h"
#include "support/python.h"

namespace lockstep {
namespace {

class PrepareWmt : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder_ = new TemporaryFolder();
    std::string real = fs::exists(fs::path(LOCKSTEP_SHARED) / "data/wmt-newstest")
                           ? fmt::format("--data '{}/data'", LOCKSTEP_SHARED)
                           : "";
    PythonResult made =
        run_python(fmt::format("'{}/tests/support/wmt_archives.py' '{}' --pairs 4000 {}",
                               LOCKSTEP_SOURCE, archives().string(), real));
    ASSERT_EQ(made.status, 0) << made.errors;
    ProgramResult result = prepare(in("plain"), from(archives().string()));
    ASSERT_EQ(result.exit_code, 0) << result.errors;
  }
  static void TearDownTestSuite() {
    delete folder_;
    folder_ = nullptr;
  }

  static fs::path in(const std::string& name) { return folder_->path() / name; }
  static fs::path archives() { return in("archives"); }
  static std::string from(const std::string& mirror) {
    return fmt::format("--mirror '{}' --checksums '{}'", mirror,
                       (archives() / "SHA256SUMS").string());
  }
  static std::string words(const fs::path& out, const std::string& more) {
    return fmt::format("prepare wmt16-en-de --out '{}' --vocab 300 --stall-seconds 1 {}",
                       out.string(), more);
  }
  static ProgramResult prepare(const fs::path& out, const std::string& more) {
    return run_lockstep(words(out, more));
  }

  // It holds the hashes of all other files.
  static std::string manifest(const std::string& out) {
    return read_file(in(out) / "manifest.json");
  }

  // A copy of the archives, to damage.
  static fs::path copied(const std::string& name) {
    fs::copy(archives(), in(name), fs::copy_options::recursive);
    return in(name);
  }

  static TemporaryFolder* folder_;
};
TemporaryFolder* PrepareWmt::folder_ = nullptr;

TEST_F(PrepareWmt, MakesACorpusAndLeavesNoWorkBehind) {
  Manifest made = read_manifest(in("plain"));
  EXPECT_EQ(made.command, "wmt16-en-de");
  EXPECT_EQ(made.pairs_read, 4000 + 200);
  EXPECT_EQ(made.vocab_size, 300);
  EXPECT_EQ(made.inputs.size(), 5u);
  EXPECT_GT(made.dropped.at("repeated pair"), 0);
  EXPECT_GT(made.dropped.at("empty line"), 0);
  EXPECT_GT(made.dropped.at("more than 80 words"), 0);
  ASSERT_EQ(made.splits.size(), 3u);
  EXPECT_EQ(made.splits[1].pairs, 100);
  EXPECT_EQ(made.splits[2].pairs, 100);
  for (const FileRecord& file : made.files) EXPECT_EQ(record_file(in("plain") / file.name), file);
  for (const char* name : {"work", "cache", ".unfinished"}) {
    EXPECT_FALSE(fs::exists(in("plain") / name)) << name;
  }
  std::string before = manifest("plain");
  ProgramResult again = prepare(in("plain"), "--mirror /nowhere");
  EXPECT_EQ(again.exit_code, 0) << again.errors;
  EXPECT_NE(again.output.find("already holds this corpus"), std::string::npos);
  ProgramResult other = prepare(in("plain"), "--keep-repeated");
  EXPECT_EQ(other.exit_code, 2);
  EXPECT_NE(other.errors.find("drop-repeated is \"yes\" there, \"no\" here"), std::string::npos);
  EXPECT_EQ(manifest("plain"), before);
}

TEST_F(PrepareWmt, KeepsInItsOldRecipeWhatMosesKeeps) {
  ProgramResult result =
      prepare(in("faithful"), from(archives().string()) + " --recipe openseq2seq");
  ASSERT_EQ(result.exit_code, 0) << result.errors;
  PythonResult expected = run_parity_script(
      "moses_clean.py",
      fmt::format("'{0}/text/train.en' '{0}/text/train.de'", archives().string()));
  ASSERT_EQ(expected.status, 0) << expected.errors;
  std::vector<std::string> english = read_lines(in("faithful") / "train.en");
  std::vector<std::string> german = read_lines(in("faithful") / "train.de");
  ASSERT_EQ(english.size(), german.size());
  std::vector<std::string> pairs;
  for (std::size_t i = 0; i < english.size(); ++i) pairs.push_back(english[i] + "\t" + german[i]);
  std::sort(pairs.begin(), pairs.end());
  std::string text;
  for (const std::string& pair : pairs) text += pair + "\n";
  EXPECT_EQ(text, expected.output);
}

TEST_F(PrepareWmt, GivesTheSameThroughABrokenLine) {
  LocalServer server(archives(), R"({"europarl/v7/de-en.tgz": [{"cut": 5000}, {"stall": 20000}],
                                     "wmt13/test.tgz": [{"status": 503, "retry_after": 0}]})");
  ProgramResult result = prepare(in("fetched"), from(server.url()));
  ASSERT_EQ(result.exit_code, 0) << result.errors;
  EXPECT_EQ(manifest("fetched"), manifest("plain"));
  EXPECT_TRUE(fs::exists(in("fetched") / "cache/europarl-v7-de-en.tgz"));
  EXPECT_EQ(server.requests().size(), 5u + 3u);
}

// Killed as soon as its log says `mark`, and started again.
class KilledAt : public PrepareWmt, public ::testing::WithParamInterface<const char*> {};

TEST_P(KilledAt, GivesTheSameWhenItIsStartedAgain) {
  std::string name = ::testing::UnitTest::GetInstance()->current_test_info()->name();
  std::replace(name.begin(), name.end(), '/', '-');
  std::string log = in(name + ".log").string();
  LocalServer server(archives());
  std::string command = fmt::format(
      "'{}' {} >/dev/null 2>'{}' & p=$!; n=0; "
      "until grep -q '{}' '{}' || [ $n = 3000 ]; do n=$((n+1)); sleep 0.005; done; "
      "kill -9 $p; wait $p; [ $n != 3000 ]",
      LOCKSTEP_PROGRAM, words(in(name), from(server.url())), log, GetParam(), log);
  ASSERT_EQ(std::system(command.c_str()), 0) << read_file(log);
  if (!fs::exists(in(name) / "manifest.json")) {
    ProgramResult other = prepare(in(name), from(server.url()) + " --seed 2");
    bool begun = fs::exists(in(name) / "work/pairs/manifest.json");
    EXPECT_EQ(other.exit_code, begun ? 2 : 0) << other.errors;
    if (!begun) fs::remove_all(in(name));
  }
  ProgramResult again = prepare(in(name), from(server.url()));
  ASSERT_EQ(again.exit_code, 0) << again.errors;
  EXPECT_EQ(manifest(name), manifest("plain"));
  EXPECT_FALSE(fs::exists(in(name) / "work"));
}

INSTANTIATE_TEST_SUITE_P(Stages, KilledAt,
                         ::testing::Values("archives: 5", "pairs: done", "words: done",
                                           "subwords: learning", "subwords: done",
                                           "tokens: .* table"));

TEST_F(PrepareWmt, SaysWhatIsWrongWithAnArchive) {
  fs::path mirror = copied("damaged");
  fs::path archive = mirror / "wmt13/training-parallel-commoncrawl.tgz";
  std::string whole = read_file(archive);
  ProgramResult unknown = prepare(in("o1"), fmt::format("--mirror '{}'", mirror.string()));
  EXPECT_EQ(unknown.exit_code, 3);
  EXPECT_NE(unknown.errors.find("commoncrawl.tgz: has"), std::string::npos) << unknown.errors;
  write_file(archive, whole.substr(0, whole.size() / 2));
  ProgramResult wrong = prepare(in("o1"), from(mirror.string()));
  EXPECT_EQ(wrong.exit_code, 3);
  EXPECT_NE(wrong.errors.find("commoncrawl.tgz: wrong checksum"), std::string::npos);
  std::string unchecked = fmt::format("--mirror '{}' --checksums none", mirror.string());
  ProgramResult cut = prepare(in("o1"), unchecked);
  EXPECT_EQ(cut.exit_code, 3);
  EXPECT_NE(cut.errors.find("no tar or zip archive, damaged or cut off"), std::string::npos);
  EXPECT_NE(cut.errors.find("while: reading commoncrawl.de-en."), std::string::npos) << cut.errors;
  // The last byte only: in the checksum of the compression, behind all text.
  write_file(archive, whole.substr(0, whole.size() - 1));
  EXPECT_EQ(prepare(in("o1"), unchecked).exit_code, 3);
  fs::copy_file(mirror / "wmt13/test.tgz", archive, fs::copy_options::overwrite_existing);
  ProgramResult other = prepare(in("o1"), unchecked);
  EXPECT_EQ(other.exit_code, 3);
  EXPECT_NE(other.errors.find("holds no commoncrawl.de-en."), std::string::npos) << other.errors;
  fs::remove(archive);
  ProgramResult absent = prepare(in("o1"), unchecked);
  EXPECT_NE(absent.errors.find("has neither wmt13/training-parallel-commoncrawl.tgz nor"),
            std::string::npos);
  // Mended, the same folder goes on.
  write_file(archive, whole);
  EXPECT_EQ(prepare(in("o1"), from(mirror.string())).exit_code, 0);
  EXPECT_EQ(manifest("o1"), manifest("plain"));
}

// The shorter one ends where a block of lines does.
TEST_F(PrepareWmt, CountsTheLinesOfBothLanguages) {
  fs::path mirror = copied("uneven");
  std::string python =
      "import io, sys, tarfile\n"
      "with tarfile.open(sys.argv[1], \"w:gz\") as t:\n"
      "    for l, n in ((\"en\", 20000), (\"de\", 16384)):\n"
      "        e = tarfile.TarInfo(\"europarl-v7.de-en.\" + l); b = b\"a b\\n\" * n\n"
      "        e.size = len(b); t.addfile(e, io.BytesIO(b))\n";
  PythonResult made =
      run_python(fmt::format("-c '{}' '{}'", python, (mirror / "europarl/v7/de-en.tgz").string()));
  ASSERT_EQ(made.status, 0) << made.errors;
  ProgramResult result =
      prepare(in("o2"), fmt::format("--mirror '{}' --checksums none", mirror.string()));
  EXPECT_EQ(result.exit_code, 3);
  EXPECT_NE(result.errors.find("europarl-v7.de-en.en has 20,000 lines, europarl-v7.de-en.de has "
                               "16,384; expected as many in both"),
            std::string::npos)
      << result.errors;
}

TEST_F(PrepareWmt, SurvivesAFullDisk) {
  fs::path small = in("small");
  fs::create_directory(small);
  if (::mount("tmpfs", small.c_str(), "tmpfs", 0, "size=1m") != 0) {
    GTEST_SKIP() << "needs root: a small file system to fill";
  }
  ProgramResult full = prepare(small / "out", from(archives().string()));
  EXPECT_EQ(full.exit_code, 4) << full.errors;
  EXPECT_NE(full.errors.find("No space left on device"), std::string::npos) << full.errors;
  EXPECT_FALSE(fs::exists(small / "out/manifest.json"));
  EXPECT_EQ(::mount("tmpfs", small.c_str(), "tmpfs", MS_REMOUNT, "size=100m"), 0);
  EXPECT_EQ(prepare(small / "out", from(archives().string())).exit_code, 0);
  EXPECT_EQ(read_file(small / "out/manifest.json"), manifest("plain"));
  ::umount(small.c_str());
}

}  // namespace
}  // namespace lockstep
