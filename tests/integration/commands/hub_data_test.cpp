// Data sets and networks of a Hugging Face hub, by name: prepared, and begun with.
#include <gtest/gtest.h>

#include "data/images/image_set.h"
#include "data/images/images_manifest.h"
#include "data/labelled/text_manifest.h"
#include "formats/parquet_file.h"
#include "support/local_server.h"
#include "support/tiny_images.h"

namespace lockstep {
namespace {

const std::string kCommit(40, 'a');

class HubNames : public ::testing::Test {
 protected:
  HubNames() {
    put("texts/COMMIT", kCommit);
    put("texts/train.csv", "sentence,label\nw w v,1\nv,0\nw,1\n");
    put("texts/dev.csv", "sentence,label\nw,1\nv v,0\n");
    put("texts/more.csv", "sentence,label\nw,1\n");
    put("texts/CARD.json", R"({
      "configs": [{"config_name": "plain", "data_files": [
                     {"split": "train", "path": "train.csv"},
                     {"split": "validation", "path": "dev.csv"}, {"split": "more", "path": "more.csv"}]},
                  {"config_name": "other", "data_files": "dev.csv"}],
      "dataset_info": [{"config_name": "plain", "features": [{"name": "label",
        "dtype": {"class_label": {"names": {"0": "dull", "1": "funny"}}}}]}]})");
    write_file(folder_.path() / "vocab.txt", "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nw\nv\n");
    put("pictures/COMMIT", kCommit);
    for (const char* split : {"train", "validation"}) {
      for (int i = 0; i < 6; ++i) {
        const fs::path path =
            served() / fmt::format("pictures/{}/{}/{}.jpg", split, i % 2 == 0 ? "cat" : "dog", i);
        fs::create_directories(path.parent_path());
        write_class_image(path, i % 2, static_cast<uint64_t>(i));
      }
    }
    server_ = std::make_unique<LocalServer>(folder_.path() / "served", "{}", "hub_server.py");
  }

  void put(const std::string& name, const std::string& content) const {
    const fs::path path = served() / name;
    fs::create_directories(path.parent_path());
    write_file(path, content);
  }
  fs::path served() const { return folder_.path() / "served/datasets/owner"; }
  fs::path out(const std::string& name) const { return folder_.path() / name; }
  ProgramResult lockstep(const std::string& words, const std::string& more = "") const {
    return run_lockstep(words, fmt::format("HF_ENDPOINT={} HF_HUB_CACHE={}/cache {}",
                                           server_->url(), folder_.path().string(), more));
  }
  ProgramResult prepare_texts(const std::string& words, const std::string& more = "") const {
    return lockstep(
        fmt::format("prepare labelled {} --vocab {}/vocab.txt", words, folder_.path().string()),
        more);
  }

  TemporaryFolder folder_;
  std::unique_ptr<LocalServer> server_;
};

TEST_F(HubNames, OfTextsArePrepared) {
  const ProgramResult made =
      prepare_texts("hf:datasets/owner/texts --subset plain --out " + out("texts").string());
  ASSERT_EQ(made.exit_code, 0) << made.errors;
  EXPECT_NE(made.errors.find("split more left out"), std::string::npos) << made.errors;
  const TextManifest manifest = read_text_manifest(out("texts"));
  EXPECT_EQ(manifest.input, "hf:datasets/owner/texts@" + kCommit + " plain");
  EXPECT_EQ(manifest.classes, (std::vector<std::string>{"dull", "funny"}));
  ASSERT_EQ(manifest.splits.size(), 2u);
  EXPECT_EQ(manifest.splits[0].class_counts, (std::vector<int64_t>{1, 2}));
  EXPECT_EQ(manifest.splits[1].name, "validation");
  const ProgramResult chosen =
      prepare_texts("hf:datasets/owner/texts --subset plain --splits train,test=more --out " +
                        out("chosen").string(),
                    "HF_HUB_OFFLINE=1");
  EXPECT_EQ(chosen.exit_code, 3) << chosen.errors;  // more.csv was never fetched
  EXPECT_NE(chosen.errors.find("more.csv is not in the cache"), std::string::npos) << chosen.errors;
}

TEST_F(HubNames, OfImagesArePrepared) {
  const ProgramResult made =
      lockstep("prepare images hf:datasets/owner/pictures --out " + out("pictures").string());
  ASSERT_EQ(made.exit_code, 0) << made.errors;
  const ImagesManifest manifest = read_images_manifest(out("pictures"));
  EXPECT_EQ(manifest.classes, (std::vector<std::string>{"cat", "dog"}));
  ASSERT_NE(manifest.find_split("val"), nullptr);
  EXPECT_EQ(manifest.find_split("val")->images, 6);
  EXPECT_EQ(manifest.find_split("train")->images, 6);
  // The same out of a table beside the pictures, with names from the card.
  put("listed/COMMIT", kCommit);
  put("listed/metadata.jsonl",
      "{\"file_name\": \"train/a.jpg\", \"kind\": 1}\n{\"file_name\": \"train/b.jpg\", \"kind\": "
      "0}\n");
  put("listed/CARD.json", R"({"dataset_info": {"features": [{"name": "kind",
      "dtype": {"class_label": {"names": {"0": "red", "1": "green"}}}}]}})");
  fs::create_directories(served() / "listed/train");
  write_class_image(served() / "listed/train/a.jpg", 1, 1);
  write_class_image(served() / "listed/train/b.jpg", 0, 2);
  const ProgramResult listed = lockstep(
      "prepare images hf:datasets/owner/listed --label kind --out " + out("listed").string());
  ASSERT_EQ(listed.exit_code, 0) << listed.errors;
  EXPECT_EQ(read_images_manifest(out("listed")).classes,
            (std::vector<std::string>{"green", "red"}));
}

TEST_F(HubNames, OfTranslationsArePrepared) {
  std::string lines;
  for (int i = 0; i < 300; ++i) {
    lines += fmt::format("the {0} house of {1},das {0} Haus von {1}\n", i % 17, i);
  }
  put("pairs/COMMIT", kCommit);
  put("pairs/train.csv", "en,de\n" + lines);
  put("pairs/test.csv", "en,de\n\"one\nhouse\",ein Haus\n");
  const ProgramResult made =
      lockstep("prepare text hf:datasets/owner/pairs --vocab 120 --out " + out("pairs").string());
  ASSERT_EQ(made.exit_code, 0) << made.errors;
  const std::string manifest = read_file(out("pairs") / "manifest.json");
  EXPECT_NE(manifest.find("train.en train.de"), std::string::npos) << manifest;
  EXPECT_NE(manifest.find("test.en test.de"), std::string::npos) << manifest;
  const ProgramResult other = lockstep(
      "prepare text hf:datasets/owner/pairs --target-language fr --out " + out("none").string());
  EXPECT_EQ(other.exit_code, 3);
  EXPECT_NE(other.errors.find("(it has en, de)"), std::string::npos) << other.errors;
  const ProgramResult two =
      lockstep("prepare text hf:datasets/owner/pairs x --out " + out("none").string());
  EXPECT_EQ(two.exit_code, 2);
  EXPECT_NE(two.errors.find("expected no target"), std::string::npos) << two.errors;
}

TEST_F(HubNames, ThatCannotBeUsedSayWhy) {
  put("cut/COMMIT", kCommit);
  put("cut/train.parquet", "PAR1" + std::string(100, 'x'));
  put("secret/COMMIT", kCommit);
  put("secret/TOKEN", "hf_1");
  auto expect = [&](const std::string& words, int code, const std::string& text) {
    const ProgramResult made = prepare_texts(words + " --out " + out("none").string());
    EXPECT_EQ(made.exit_code, code) << words << "\n" << made.errors;
    EXPECT_NE(made.errors.find(text), std::string::npos) << words << "\n" << made.errors;
  };
  expect("hf:datasets/owner/nothing", 3, "there is no such data set, or it is private");
  expect("hf:datasets/owner/secret", 3, "HF_TOKEN=..., when it is private or gated");
  expect("hf:datasets/owner/texts", 3, "which of its 2 subsets? (plain, other)");
  expect("hf:datasets/owner/texts --subset pain", 3, "did you mean plain? (plain, other)");
  expect("hf:datasets/owner/texts --subset plain --splits test", 3,
         "no split \"test\" (train, validation, more)");
  expect("hf:datasets/owner/texts --subset plain --label stars", 3,
         "no column \"stars\" (--label); it has sentence, label");
  expect("hf:owner/texts", 2, "hf:datasets/owner/texts");
  expect(folder_.path().string() + " --subset plain", 2, "--subset: for a data set of the hub");
  if (has_parquet()) expect("hf:datasets/owner/cut", 3, "no whole Parquet file");
}

TEST_F(HubNames, OfNetworksAreBegunWith) {
  const fs::path data = folder_.path() / "images";
  write_tiny_images(data, {.classes = 2});
  write_tiny_image_config(folder_.path() / "tiny.toml", data);
  const std::string again = fmt::format(" {}/tiny.toml training.steps=2 model.source=hf:owner/vit ",
                                        folder_.path().string());
  const std::string words = fmt::format(
      " {}/tiny.toml training.steps=2 model.name=vit_ti16 model.patch=8 ", folder_.path().string());
  const ProgramResult first = lockstep("train" + words + "run.folder=" + out("first").string());
  ASSERT_EQ(first.exit_code, 0) << first.errors;
  const fs::path model = folder_.path() / "served/owner/vit";
  fs::create_directories(model.parent_path());
  const ProgramResult exported =
      lockstep(fmt::format("export {} --out {}", out("first").string(), model.string()));
  ASSERT_EQ(exported.exit_code, 0) << exported.errors;
  write_file(model / "COMMIT", kCommit);
  // The name and the patch of the network come from the source.
  const ProgramResult second = lockstep("train" + again + "run.folder=" + out("second").string());
  ASSERT_EQ(second.exit_code, 0) << second.errors;
  EXPECT_NE(second.errors.find("model.source hf:owner/vit: a vit_ti16"), std::string::npos)
      << second.errors;
  EXPECT_EQ(second.errors.find("last layer"), std::string::npos) << second.errors;
  const ProgramResult loaded =
      lockstep("train" + words + "run.load_model=" + out("first").string() +
               " run.folder=" + out("loaded").string());
  ASSERT_EQ(loaded.exit_code, 0) << loaded.errors;
  EXPECT_EQ(metrics_of(out("second"), "step")[0].at("train/loss"),
            metrics_of(out("loaded"), "step")[0].at("train/loss"));
  // A run remembers its network without the source.
  fs::remove_all(folder_.path() / "cache");
  fs::remove_all(model);
  const ProgramResult resumed =
      lockstep("train" + again + "training.steps=3 --resume run.folder=" + out("second").string());
  EXPECT_EQ(resumed.exit_code, 0) << resumed.errors;
  const ProgramResult evaluated = lockstep("evaluate --by-class " + out("second").string());
  ASSERT_EQ(evaluated.exit_code, 0) << evaluated.errors;
  EXPECT_NE(evaluated.output.find("f1 %"), std::string::npos) << evaluated.output;
  const ProgramResult missing = lockstep("train" + again + "run.folder=" + out("missing").string());
  EXPECT_EQ(missing.exit_code, 3);
  EXPECT_NE(missing.errors.find("there is no such model"), std::string::npos) << missing.errors;
}

}  // namespace
}  // namespace lockstep
