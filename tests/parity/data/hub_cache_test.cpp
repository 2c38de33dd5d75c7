// Shares the cache of data sets with Hugging Face's huggingface_hub, in both directions.
#include <gtest/gtest.h>

#include "data/fetch/hub_data.h"
#include "support/local_server.h"
#include "support/python.h"

namespace lockstep {
namespace {

const std::string kCommit(40, 'a');

class HubCache : public ::testing::Test {
 protected:
  HubCache() {
    for (const auto& [name, content] :
         {std::pair{"COMMIT", kCommit},
          {"data/train-00000-of-00001.parquet", std::string("text")},
          {"data/test-00000-of-00001.parquet", std::string(50'000, 'p')}}) {
      const fs::path path = folder_.path() / "served/datasets/owner/name" / name;
      fs::create_directories(path.parent_path());
      write_file(path, content);
    }
    server_ = std::make_unique<LocalServer>(folder_.path() / "served", "{}", "hub_server.py");
  }

  PythonResult python(const std::string& statement) const {
    write_file(folder_.path() / "script.py", "import huggingface_hub as h\n" + statement + "\n");
    ::setenv("HF_ENDPOINT", server_->url().c_str(), 1);
    ::setenv("HF_HUB_CACHE", cache().c_str(), 1);
    ::setenv("HF_HUB_DISABLE_XET", "1", 1);
    PythonResult result = run_python((folder_.path() / "script.py").string());
    for (const char* name : {"HF_ENDPOINT", "HF_HUB_CACHE", "HF_HUB_DISABLE_XET"}) ::unsetenv(name);
    return result;
  }
  HubData fetch(bool offline) const {
    return fetch_hub_data(
        Hub({.cache = cache(), .endpoint = server_->url(), .offline = offline}),
        {.dataset = {"owner/name", "main", true}, .splits = {{"train", "train"}}});
  }
  fs::path cache() const { return folder_.path() / "cache"; }

  TemporaryFolder folder_;
  std::unique_ptr<LocalServer> server_;
};

TEST_F(HubCache, OfHuggingfaceHubIsUsed) {
  if (!python_has("huggingface_hub")) GTEST_SKIP() << "no huggingface_hub for " << LOCKSTEP_PYTHON;
  const PythonResult made = python(
      "print(h.snapshot_download('owner/name', repo_type='dataset', "
      "allow_patterns=['data/train-00000-of-00001.parquet']))");
  ASSERT_EQ(made.status, 0) << made.errors;
  const HubData data = fetch(/*offline=*/true);
  EXPECT_EQ(data.folder.string() + "\n", made.output);
  EXPECT_EQ(read_file(data.folder / "data/train-00000-of-00001.parquet"), "text");
  // Nothing is fetched twice: only what the revision is.
  const std::size_t before = server_->requests().size();
  fetch(/*offline=*/false);
  EXPECT_EQ(server_->requests().size(), before + 1);
}

TEST_F(HubCache, IsLeftAsHuggingfaceHubExpectsIt) {
  if (!python_has("huggingface_hub")) GTEST_SKIP() << "no huggingface_hub for " << LOCKSTEP_PYTHON;
  fetch_hub_data(Hub({.cache = cache(), .endpoint = server_->url()}),
                 {.dataset = {"owner/name", "main", true}, .splits = {{"test", "test"}}});
  const PythonResult read = python(
      "f = 'data/test-00000-of-00001.parquet'\n"
      "p = h.hf_hub_download('owner/name', f, repo_type='dataset', local_files_only=True)\n"
      "assert open(p).read() == 'p' * 50000\n"
      "c = h.scan_cache_dir()\n"
      "assert not c.warnings, c.warnings\n"
      "print([(r.repo_type, r.repo_id, r.nb_files, list(r.refs)) for r in c.repos])");
  ASSERT_EQ(read.status, 0) << read.errors;
  EXPECT_EQ(read.output, "[('dataset', 'owner/name', 1, ['main'])]\n");
}

}  // namespace
}  // namespace lockstep
