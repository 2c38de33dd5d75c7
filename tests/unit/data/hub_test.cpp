#include "data/fetch/hub.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "base/digest.h"
#include "support/expect_error.h"
#include "support/local_server.h"

namespace lockstep {
namespace {

const std::string kFirstCommit(40, 'a'), kNextCommit(40, 'b');

class HubModels : public ::testing::Test {
 protected:
  HubModels() {
    fs::create_directories(served());
    write_file(served() / "COMMIT", kFirstCommit);
    write_file(served() / "config.json", R"({"model_type": "bert"})");
    write_file(served() / "vocab.txt", "[PAD]\n");
    write_file(served() / "model.safetensors", std::string(200'000, 'w'));
    // Where large files are kept.
    fs::create_directories(folder_.path() / "served/cdn/owner");
    fs::create_directory_symlink(served(), folder_.path() / "served/cdn/owner/name");
  }

  fs::path served() const { return folder_.path() / "served/owner/name"; }
  fs::path cache() const { return folder_.path() / "cache"; }
  fs::path model_folder() const { return cache() / "models--owner--name"; }

  Hub hub(const std::string& endpoint, const std::string& token = "", bool offline = false) const {
    return Hub({.cache = cache(),
                .endpoint = endpoint,
                .token = token,
                .offline = offline,
                .download = {.attempts = 2, .first_pause = std::chrono::milliseconds(1)}});
  }

  TemporaryFolder folder_;
};

const HubReference kModel{"owner/name"};

std::unique_ptr<LocalServer> serve(const fs::path& folder, const std::string& faults = "{}") {
  return std::make_unique<LocalServer>(folder, faults, "hub_server.py");
}

TEST_F(HubModels, AreKeptAsHuggingFaceHubKeepsThem) {
  const auto server = serve(folder_.path() / "served");
  const fs::path snapshot = hub(server->url()).model(kModel);
  EXPECT_EQ(snapshot, model_folder() / "snapshots" / kFirstCommit);
  EXPECT_EQ(read_file(model_folder() / "refs/main"), kFirstCommit);
  const std::string digest = sha256_of_file(served() / "model.safetensors");
  EXPECT_EQ(fs::read_symlink(snapshot / "model.safetensors"), "../../blobs/" + digest);
  EXPECT_EQ(read_file(snapshot / "model.safetensors"), read_file(served() / "model.safetensors"));
  EXPECT_EQ(read_file(snapshot / "config.json"), read_file(served() / "config.json"));
  EXPECT_TRUE(fs::exists(model_folder() / ".no_exist" / kFirstCommit / "tokenizer_config.json"));
  EXPECT_TRUE(fs::exists(cache() / ".locks/models--owner--name" / (digest + ".lock")));
  for (const auto& blob : fs::directory_iterator(model_folder() / "blobs")) {
    EXPECT_EQ(blob.path().extension(), "") << blob.path();  // nothing is left half-done
  }
}

TEST_F(HubModels, AreNotFetchedAgain) {
  const auto server = serve(folder_.path() / "served");
  hub(server->url()).model(kModel);
  const std::size_t before = server->requests().size();
  hub(server->url()).model(kModel);
  // Whether main has moved is asked once; the commit's files are there.
  EXPECT_EQ(server->requests().size(), before + 1);
  hub(server->url()).model({"owner/name", kFirstCommit});
  EXPECT_EQ(server->requests().size(), before + 1);
}

TEST_F(HubModels, FollowTheirBranch) {
  const auto server = serve(folder_.path() / "served");
  hub(server->url()).model(kModel);
  write_file(served() / "COMMIT", kNextCommit);
  write_file(served() / "vocab.txt", "[PAD]\n[UNK]\n");
  const fs::path snapshot = hub(server->url()).model(kModel);
  EXPECT_EQ(snapshot, model_folder() / "snapshots" / kNextCommit);
  EXPECT_EQ(read_file(model_folder() / "refs/main"), kNextCommit);
  EXPECT_EQ(read_file(snapshot / "vocab.txt"), "[PAD]\n[UNK]\n");
  EXPECT_TRUE(fs::exists(model_folder() / "snapshots" / kFirstCommit / "vocab.txt"));
}

TEST_F(HubModels, GoOnWhereTheLineWasCut) {
  const auto server =
      serve(folder_.path() / "served", R"({"cdn/owner/name/model.safetensors": [{"cut": 70000}]})");
  const fs::path snapshot = hub(server->url()).model(kModel);
  EXPECT_EQ(read_file(snapshot / "model.safetensors"), read_file(served() / "model.safetensors"));
  bool resumed = false;
  for (const std::string& line : server->requests()) {
    resumed |= line.find("model.safetensors bytes=70000-") != std::string::npos;
  }
  EXPECT_TRUE(resumed);
}

TEST_F(HubModels, TakeUpWhatHuggingFaceHubHasBegun) {
  const std::string digest = sha256_of_file(served() / "model.safetensors");
  fs::create_directories(model_folder() / "blobs");
  write_file(model_folder() / "blobs" / (digest + ".incomplete"), std::string(1000, 'w'));
  const auto server = serve(folder_.path() / "served");
  hub(server->url()).model(kModel);
  bool resumed = false;
  for (const std::string& line : server->requests()) {
    resumed |= line.find("model.safetensors bytes=1000-") != std::string::npos;
  }
  EXPECT_TRUE(resumed);
}

TEST_F(HubModels, AreUsedWithoutTheNetwork) {
  std::string url;
  {
    const auto server = serve(folder_.path() / "served");
    url = server->url();
    hub(url).model(kModel);
  }
  EXPECT_EQ(hub(url, "", true).model(kModel), model_folder() / "snapshots" / kFirstCommit);
  EXPECT_EQ(hub(url).model(kModel), model_folder() / "snapshots" / kFirstCommit);  // not reached
  EXPECT_ERROR(hub(url, "", true).model({"owner/other"}), DataError, "HF_HUB_OFFLINE is set");
  EXPECT_ERROR(hub(url).model({"owner/other"}), MachineError, "no answer");
}

TEST_F(HubModels, SayWhyTheyCannotBeHad) {
  const auto server = serve(folder_.path() / "served");
  EXPECT_ERROR(hub(server->url()).model({"owner/other"}), DataError, "there is no such model");
  EXPECT_ERROR(hub(server->url()).model({"owner/name", "absent"}), DataError,
               "there is no such revision");
  write_file(served() / "TOKEN", "hf_secret");
  EXPECT_ERROR(hub(server->url()).model(kModel), DataError, "its owner must allow you to read it");
  EXPECT_EQ(hub(server->url(), "hf_secret").model(kModel),
            model_folder() / "snapshots" / kFirstCommit);
  fs::remove(served() / "model.safetensors");
  write_file(served() / "COMMIT", kNextCommit);
  EXPECT_ERROR(hub(server->url(), "hf_secret").model(kModel), DataError,
               "has neither model.safetensors nor pytorch_model.bin");
}

TEST_F(HubModels, AreNotAskedForAgainWhereTheServerIsNotTrusted) {
  const auto server = serve(folder_.path() / "served");
  ::setenv("SSL_CERT_FILE", "/nowhere/authorities.pem", 1);
  const Hub strict({.cache = cache(),
                    .endpoint = "https" + server->url().substr(4),
                    .download = {.attempts = 2, .first_pause = std::chrono::minutes(10)}});
  EXPECT_ERROR(strict.model(kModel), MachineError, "the certificates of this system");
  ::unsetenv("SSL_CERT_FILE");
}

TEST(HubReferences, NameModelsAndRevisions) {
  EXPECT_FALSE(hub_reference("runs/hf"));
  EXPECT_EQ(hub_reference("hf:bert-base-uncased")->repository, "bert-base-uncased");
  const HubReference whole = *hub_reference("hf:owner/name@refs/pr/1");
  EXPECT_EQ(whole.repository, "owner/name");
  EXPECT_EQ(whole.revision, "refs/pr/1");
  for (const char* wrong : {"hf:", "hf:a/b/c", "hf:a/", "hf:a/b@", "hf:../b", "hf:a/b@../c"}) {
    EXPECT_ERROR(hub_reference(wrong), ConfigError, "expected hf:OWNER/NAME");
  }
  const HubReference data = *hub_reference("hf:datasets/owner/name@v1");
  EXPECT_TRUE(data.dataset);
  EXPECT_EQ(data.repository, "owner/name");
  EXPECT_EQ(data.text(), "hf:datasets/owner/name@v1");
  EXPECT_EQ(hub_reference("hf:datasets/imdb")->text(), "hf:datasets/imdb@main");
  EXPECT_ERROR(hub_reference("hf:datasets/a/b/c"), ConfigError, "expected hf:datasets/OWNER/NAME");
  EXPECT_ERROR(find_model("hf:datasets/owner/name"), ConfigError, "a data set; expected a model");
  EXPECT_ERROR(find_model("absent/model"), DataError, "hf:absent/model for a model");
}

TEST(HubSettings, AreThoseOfTheEnvironment) {
  TemporaryFolder home;
  write_file(home.path() / "token", "hf_file\n");
  for (const char* name : {"HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE", "HF_TOKEN",
                           "HUGGING_FACE_HUB_TOKEN", "HF_TOKEN_PATH", "TRANSFORMERS_OFFLINE"}) {
    ::unsetenv(name);
  }
  ::setenv("HF_HOME", home.path().c_str(), 1);
  ::setenv("HF_ENDPOINT", "http://localhost:1/", 1);
  ::setenv("HF_HUB_OFFLINE", "yes", 1);
  HubSettings settings = HubSettings::from_environment();
  EXPECT_EQ(settings.cache, home.path() / "hub");
  EXPECT_EQ(settings.endpoint, "http://localhost:1");
  EXPECT_EQ(settings.token, "hf_file");
  EXPECT_TRUE(settings.offline);
  ::setenv("HF_HUB_CACHE", "/elsewhere", 1);
  ::setenv("HF_TOKEN", "hf_own", 1);
  ::setenv("HF_HUB_OFFLINE", "0", 1);
  settings = HubSettings::from_environment();
  EXPECT_EQ(settings.cache, "/elsewhere");
  EXPECT_EQ(settings.token, "hf_own");
  EXPECT_FALSE(settings.offline);
  for (const char* name :
       {"HF_HOME", "HF_ENDPOINT", "HF_HUB_OFFLINE", "HF_HUB_CACHE", "HF_TOKEN"}) {
    ::unsetenv(name);
  }
}

}  // namespace
}  // namespace lockstep
