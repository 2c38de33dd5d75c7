#include "data/fetch/hub_data.h"

#include <gtest/gtest.h>

#include "data/fetch/hub_answers.h"
#include "support/expect_error.h"
#include "support/local_server.h"

namespace lockstep {
namespace {

const std::string kCommit(40, 'a'), kConverted(40, 'c');
const HubReference kSet{"owner/name", "main", true};

// Lists splits and files, a line a split.
std::string shown(const HubData& data) {
  std::string out;
  for (const HubSplit& split : data.splits) {
    out += split.name + ":";
    for (const std::string& file : split.files) out += " " + file;
    out += "\n";
  }
  return out;
}

std::string chosen(std::vector<std::string> files, const std::string& card = "{}",
                   HubDataRequest request = {}) {
  request.dataset = kSet;
  return shown(choose_hub_data({kCommit, std::move(files), card}, request));
}

TEST(HubDataSets, AreDividedAsTheirFilesAreNamed) {
  EXPECT_EQ(chosen({"README.md", "data/test-00000-of-00001.parquet",
                    "data/train-00001-of-00002.parquet", "data/train-00000-of-00002.parquet"}),
            "train: data/train-00000-of-00002.parquet data/train-00001-of-00002.parquet\n"
            "test: data/test-00000-of-00001.parquet\n");
  EXPECT_EQ(chosen({"dev.csv", "my_train.csv", ".gitattributes", "dataset_infos.json"}),
            "train: my_train.csv\nvalidation: dev.csv\n");
  EXPECT_EQ(chosen({"training/a.jsonl", "eval/b.jsonl"}),
            "train: training/a.jsonl\ntest: eval/b.jsonl\n");
  EXPECT_EQ(chosen({"trainer.csv", "constrain.csv"}), "train: constrain.csv trainer.csv\n");
  EXPECT_EQ(chosen({"a.tsv.gz"}), "train: a.tsv.gz\n");
}

TEST(HubDataSets, AreReadInOneFormat) {
  EXPECT_EQ(chosen({"train.csv", "test.csv", "train.parquet"}),
            "train: train.csv\ntest: test.csv\n");
  EXPECT_EQ(chosen({"train.csv", "train.parquet"}), "train: train.parquet\n");
  const HubDataRequest images{.content = HubContent::kImages};
  EXPECT_EQ(chosen({"assets/a.png", "assets/b.png", "data/train.parquet"}, "{}", images),
            "train: data/train.parquet\n");
  EXPECT_EQ(chosen({"train/cat/1.jpg", "train/dog/2.PNG", "validation/cat/3.jpeg", "a.csv"}, "{}",
                   images),
            "train: train/cat/1.jpg train/dog/2.PNG\nvalidation: validation/cat/3.jpeg\n");
  EXPECT_EQ(chosen({"metadata.csv", "train/1.jpg", "test/2.jpg"}, "{}", images),
            "train: train/1.jpg metadata.csv\ntest: test/2.jpg metadata.csv\n");
  EXPECT_EQ(chosen({"train.zip", "data/val.tar.gz"}, "{}", images),
            "train: train.zip\nvalidation: data/val.tar.gz\n");
}

const char* const kCard = R"({
  "configs": [
    {"config_name": "cola", "data_files": [{"split": "train", "path": "cola/train-*"},
                                           {"split": "valid", "path": ["cola/dev.parquet"]}]},
    {"config_name": "sst2", "data_dir": "sst2", "default": true,
     "data_files": {"train": "**/train*.parquet", "unsupervised": "more.parquet"}},
    {"config_name": "all", "data_files": "**/*.parquet"},
    {"config_name": "folder", "data_dir": "cola"}],
  "dataset_info": [
    {"config_name": "cola", "features": [
      {"name": "label", "dtype": {"class_label": {"names": {"0": "bad", "1": "good"}}}}]},
    {"config_name": "sst2", "features": [
      {"name": "sentence", "dtype": "string"},
      {"name": "label", "dtype": {"class_label": {"names": ["negative", "positive"]}}}]}]})";
const std::vector<std::string> kFiles = {"cola/train-0.parquet", "cola/train-1.parquet",
                                         "cola/dev.parquet", "sst2/more.parquet",
                                         "sst2/deep/train.parquet"};

TEST(HubDataSets, FollowTheConfigurationsOfTheirCard) {
  HubData data = choose_hub_data({kCommit, kFiles, kCard}, {.dataset = kSet});
  EXPECT_EQ(data.configuration, "sst2");
  EXPECT_EQ(data.name(), "hf:datasets/owner/name@" + kCommit + " sst2");
  EXPECT_EQ(shown(data), "train: sst2/deep/train.parquet\n");
  EXPECT_EQ(data.others, std::vector<std::string>{"unsupervised"});
  EXPECT_EQ(data.class_names.at("label"), (std::vector<std::string>{"negative", "positive"}));
  data = choose_hub_data({kCommit, kFiles, kCard}, {.dataset = kSet, .configuration = "cola"});
  EXPECT_EQ(shown(data),
            "train: cola/train-0.parquet cola/train-1.parquet\nvalidation: cola/dev.parquet\n");
  EXPECT_EQ(data.class_names.at("label"), (std::vector<std::string>{"bad", "good"}));
  EXPECT_EQ(chosen(kFiles, kCard, {.configuration = "folder"}),
            "train: cola/train-0.parquet cola/train-1.parquet\nvalidation: cola/dev.parquet\n");
  EXPECT_EQ(chosen(kFiles, kCard, {.splits = {{"test", "unsupervised"}, {"train", "train"}}}),
            "test: sst2/more.parquet\ntrain: sst2/deep/train.parquet\n");
}

TEST(HubDataSets, ThatTheHubConvertedHaveAFolderASplit) {
  const std::vector<std::string> files = {"a/train/0000.parquet", "a/train/0001.parquet",
                                          "b/partial-train/0000.parquet", "b/test/0000.parquet"};
  EXPECT_EQ(chosen(files, "{}", {.configuration = "b"}),
            "train: b/partial-train/0000.parquet\ntest: b/test/0000.parquet\n");
  EXPECT_ERROR(chosen(files), DataError, "which of its 2 subsets? (a, b)");
  EXPECT_EQ(chosen({"a/train/0000.parquet"}), "train: a/train/0000.parquet\n");
}

TEST(HubDataSets, HaveACardThatCanBeWrong) {
  auto card = [](const std::string& names) {
    return R"({"dataset_info": {"features": [{"name": "l", "dtype": {"class_label": {"names": )" +
           names + "}}}]}}";
  };
  const std::vector<std::string> files = {"train.csv"};
  EXPECT_EQ(chosen(files, card(R"({"1": "b", "0": "a"})")), "train: train.csv\n");
  for (const char* names : {R"({"0": "a", "5": "b"})", R"({"x": "a"})", R"({"-1": "a"})"}) {
    EXPECT_ERROR(chosen(files, card(names)), DataError, "in a way that is not known");
  }
}

// What the hub answers comes from outside.
TEST(HubAnswers, OfAnotherKindAreRefused) {
  const std::string sha = R"("sha": ")" + std::string(kCommit) + "\"";
  const HubListing listing = hub_listing_of(
      "{" + sha + R"(, "siblings": [{"rfilename": "a/b"}], "cardData": {"x": [1]}})", "url");
  EXPECT_EQ(listing.files, std::vector<std::string>{"a/b"});
  EXPECT_EQ(listing.card, R"({"x":[1]})");
  EXPECT_EQ(
      hub_tree_of(R"([{"type": "directory", "path": "a"}, {"type": "file", "path": "b"}])", ""),
      std::vector<std::string>{"b"});
  EXPECT_EQ(kept_hub_listing_of(kept_text(listing), "").files, listing.files);
  const std::string deep = std::string(100'000, '[') + std::string(100'000, ']');
  for (const std::string& answer :
       {std::string("<html>"), std::string("[]"), "{" + sha + R"(, "siblings": [1]})",
        "{" + sha + R"(, "siblings": [{"rfilename": "../x"}]})",
        "{" + sha + R"(, "cardData": {"x": )" + deep + "}}", std::string(R"({"sha": "main"})")}) {
    EXPECT_ERROR(hub_listing_of(answer, "url"), DataError, "url: ");
  }
  for (const std::string& answer :
       {std::string("{\"error\": 1}"), std::string(R"([{"type": "file"}])"), deep,
        std::string(R"([{"type": "file", "path": "/etc/passwd"}])")}) {
    EXPECT_ERROR(hub_tree_of(answer, "url"), DataError, "url: ");
  }
}

TEST(HubDataSets, SayWhatIsThereInstead) {
  EXPECT_ERROR(chosen(kFiles, kCard, {.configuration = "sst"}), DataError,
               "no subset \"sst\"; did you mean sst2? (cola, sst2, all, folder)");
  EXPECT_ERROR(chosen(kFiles, kCard, {.splits = {{"train", "trian"}}}), DataError,
               "subset sst2: no split \"trian\"; did you mean train? (train, unsupervised)");
  EXPECT_ERROR(chosen({"a/train.csv"}, "{}", {.configuration = "b"}), DataError,
               "no subset \"b\" (a)");
  EXPECT_ERROR(chosen({"name.py", "train.bin"}), DataError, "it holds name.py, train.bin");
  EXPECT_ERROR(chosen({"x.parquet"}, R"({"configs": [{"data_files": [{"split": "full",
               "path": "x.parquet"}]}]})"),
               DataError, "no split is called train, validation or test (full)");
  EXPECT_ERROR(chosen({"x.parquet"}, R"({"configs": [{"data_files": 7}]})"), DataError,
               "its card (README.md) describes its files in a way that is not known");
  EXPECT_ERROR(hub_split_choices("train,train=b"), ConfigError, "expected names such as");
  EXPECT_ERROR(hub_split_choices("train,"), ConfigError, "expected names such as");
}

class HubDataServed : public ::testing::Test {
 protected:
  void put(const std::string& name, const std::string& content) const {
    const fs::path path = served() / name;
    fs::create_directories(path.parent_path());
    write_file(path, content);
  }
  fs::path served() const { return folder_.path() / "served/datasets/owner/name"; }
  fs::path cache() const { return folder_.path() / "cache"; }
  fs::path own_folder() const { return cache() / "datasets--owner--name"; }
  void serve(const std::string& faults = "{}") {
    server_ = std::make_unique<LocalServer>(folder_.path() / "served", faults, "hub_server.py");
  }
  Hub hub(const std::string& token = "", bool offline = false) const {
    return Hub({.cache = cache(),
                .endpoint = server_->url(),
                .token = token,
                .offline = offline,
                .download = {.attempts = 2, .first_pause = std::chrono::milliseconds(1)}});
  }
  HubDataServed() {
    put("COMMIT", kCommit);
    put("data/train-00000-of-00001.parquet", std::string(100'000, 't'));
    put("data/test-00000-of-00001.parquet", std::string(1'000, 'e'));
  }

  TemporaryFolder folder_;
  std::unique_ptr<LocalServer> server_;
};

TEST_F(HubDataServed, AreKeptAsHuggingFaceHubKeepsThemAndGoOnAfterABreak) {
  const std::string train = "data/train-00000-of-00001.parquet";
  serve("{\"cdn/datasets/owner/name/" + train + "\": [{\"cut\": 30000}, {\"cut\": 40000}]}");
  const HubData data = fetch_hub_data(hub(), {.dataset = kSet});
  EXPECT_EQ(data.folder, own_folder() / "snapshots" / kCommit);
  EXPECT_EQ(read_file(data.folder / train), std::string(100'000, 't'));
  EXPECT_TRUE(fs::is_symlink(data.folder / train));
  EXPECT_EQ(read_file(own_folder() / "refs/main"), kCommit);
  std::string ranges;
  for (const std::string& line : server_->requests()) {
    const std::size_t at = line.find("bytes=");
    if (line.find(" /cdn/") == std::string::npos) continue;  // where large files are kept
    if (at != std::string::npos) ranges += line.substr(at, line.find(' ', at) - at) + " ";
  }
  EXPECT_EQ(ranges, "bytes=30000- bytes=70000- ");
  const std::size_t before = server_->requests().size();
  fetch_hub_data(hub(), {.dataset = kSet});
  EXPECT_EQ(server_->requests().size(), before + 1);  // whether main has moved
}

TEST_F(HubDataServed, AreTakenFromTheCacheWithoutTheNetwork) {
  put("CARD.json", R"({"configs": [{"config_name": "one", "data_files": [
      {"split": "train", "path": "data/test*"}]}]})");
  serve();
  const std::string first = shown(fetch_hub_data(hub(), {.dataset = kSet}));
  EXPECT_EQ(first, "train: data/test-00000-of-00001.parquet\n");
  EXPECT_EQ(shown(fetch_hub_data(hub("", true), {.dataset = kSet})), first);
  // What huggingface_hub has fetched: no card, only the files.
  fs::remove_all(own_folder() / ".lockstep");
  EXPECT_EQ(shown(fetch_hub_data(hub("", true), {.dataset = kSet})),
            "test: data/test-00000-of-00001.parquet\n");
  EXPECT_ERROR(fetch_hub_data(hub("", true), {.dataset = {"owner/other", "main", true}}), DataError,
               "HF_HUB_OFFLINE is set");
}

TEST_F(HubDataServed, OfOtherFilesAreTakenFromTheirConversion) {
  for (const char* name : {"train", "test"}) {
    fs::remove(served() / fmt::format("data/{}-00000-of-00001.parquet", name));
  }
  put("name.py", "import datasets");
  serve();
  EXPECT_ERROR(fetch_hub_data(hub(), {.dataset = kSet}), DataError, "it holds name.py");
  put("BRANCHES/refs/convert/parquet/COMMIT", kConverted);
  put("BRANCHES/refs/convert/parquet/default/train/0000.parquet", "PAR1");
  const HubData data = fetch_hub_data(hub(), {.dataset = kSet});
  EXPECT_EQ(data.folder, own_folder() / "snapshots" / kConverted);
  EXPECT_EQ(shown(data), "train: default/train/0000.parquet\n");
  EXPECT_EQ(read_file(own_folder() / "refs/refs/convert/parquet"), kConverted);
  // Who names a revision gets that one.
  EXPECT_ERROR(fetch_hub_data(hub(), {.dataset = {"owner/name", kCommit, true}}), DataError,
               "it holds name.py");
}

TEST_F(HubDataServed, OfVeryManyFilesAreListedPageByPage) {
  put("TREE", "");
  for (int i = 0; i < 20; ++i) put(fmt::format("train/c{}/ä {}.jpg", i % 2, i), "x");
  for (const char* name : {"train", "test"}) {
    fs::remove(served() / fmt::format("data/{}-00000-of-00001.parquet", name));
  }
  serve();
  const HubData data = fetch_hub_data(hub(), {.dataset = kSet, .content = HubContent::kImages});
  ASSERT_EQ(data.splits.size(), 1u);
  EXPECT_EQ(data.splits[0].files.size(), 20u);
  for (const std::string& file : data.splits[0].files) {
    EXPECT_EQ(read_file(data.folder / file), "x") << file;
  }
}

TEST_F(HubDataServed, SayWhyTheyCannotBeHad) {
  serve(R"({"api/datasets/owner/name/revision/main": [{"status": 503}]})");
  fetch_hub_data(hub(), {.dataset = kSet});  // a passing fault
  EXPECT_ERROR(fetch_hub_data(hub(), {.dataset = {"owner/other", "main", true}}), DataError,
               "there is no such data set, or it is private");
  EXPECT_ERROR(fetch_hub_data(hub(), {.dataset = {"owner/name", "absent", true}}), DataError,
               "there is no such revision");
  write_file(served() / "TOKEN", "hf_secret");
  EXPECT_ERROR(fetch_hub_data(hub(), {.dataset = kSet}), DataError,
               "HF_TOKEN=..., when it is private or gated");
  EXPECT_ERROR(fetch_hub_data(hub("hf_other"), {.dataset = kSet}), DataError,
               "a token that may read it");
  write_file(served() / "GATED", "");
  EXPECT_ERROR(fetch_hub_data(hub(), {.dataset = kSet}), DataError,
               "its owner must allow you to read it");
  EXPECT_EQ(fetch_hub_data(hub("hf_secret"), {.dataset = kSet}).splits.size(), 2u);
}

}  // namespace
}  // namespace lockstep
