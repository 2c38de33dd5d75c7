#include "data/store/object_store.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "base/digest.h"
#include "base/error.h"
#include "support/s3_environment.h"
#include "support/ssh_hosts.h"

namespace lockstep {
namespace {

std::string some_bytes(std::size_t size) {
  std::string out(size, ' ');
  for (std::size_t i = 0; i < size; ++i) out[i] = static_cast<char>((i * 2654435761u) >> 13);
  return out;
}

std::string hash_of(const std::string& text) { return sha256_hex(std::as_bytes(std::span(text))); }

// The text of what `call` throws, of whatever type; `Type` is checked.
template <typename Type, typename Call>
std::string thrown(Call call) {
  try {
    call();
  } catch (const Type& error) {
    return error.describe();
  } catch (const std::exception& error) {
    return std::string("another type: ") + error.what();
  }
  return "nothing was thrown";
}

::testing::AssertionResult holds(const std::string& text, const std::string& part) {
  if (text.find(part) != std::string::npos) return ::testing::AssertionSuccess();
  return ::testing::AssertionFailure() << "not in: " << text;
}

// What every store does.
void expect_store(ObjectStore& store) {
  TemporaryFolder folder;
  const std::string text = some_bytes(300'000);
  write_file(folder.path() / "file", text);
  EXPECT_TRUE(store.list("").empty());
  EXPECT_FALSE(object_text(store, "run.json"));
  EXPECT_FALSE(store.get("checkpoints/step_1/w", folder.path() / "none", 0));
  store.put("checkpoints/step_1/w", folder.path() / "file", hash_of(text));
  const std::vector<std::string> names = {"an odd+name (1).txt", "a", "b", "c", "d", "e"};
  for (const std::string& name : names) put_text(store, name, "text of " + name);
  put_text(store, "a", "newer");
  EXPECT_EQ(*object_text(store, "a"), "newer");
  EXPECT_EQ(*object_text(store, names[0]), "text of " + names[0]);
  std::set<std::string> keys;
  for (const StoredObject& object : store.list("")) keys.insert(object.key);
  std::set<std::string> expected(names.begin(), names.end());
  expected.insert("checkpoints/step_1/w");
  EXPECT_EQ(keys, expected);
  const auto below = store.list("checkpoints/step_1");
  ASSERT_EQ(below.size(), 1u);
  EXPECT_EQ(below[0].key, "checkpoints/step_1/w");
  EXPECT_EQ(below[0].bytes, 300'000);
  // A download goes on where it broke off.
  const fs::path here = folder.path() / "here";
  write_file(here.string() + ".part", text.substr(0, 100'001));
  fetch_object(store, {"checkpoints/step_1/w", here, 300'000, hash_of(text)});
  EXPECT_EQ(read_file(here), text);
  // What was here of another version is noticed by the hash and fetched again.
  fs::remove(here);
  write_file(here.string() + ".part", std::string(1000, 'x'));
  fetch_object(store, {"checkpoints/step_1/w", here, 300'000, hash_of(text)});
  EXPECT_EQ(read_file(here), text);
  fs::remove(here);
  EXPECT_TRUE(holds(thrown<DataError>([&] {
                      fetch_object(store, {"checkpoints/step_1/w", here, 300'000, hash_of("x")});
                    }),
                    "SHA-256"));
  store.remove("checkpoints/step_1/w");
  store.remove("checkpoints/step_1/w");
  EXPECT_TRUE(store.list("checkpoints/step_1").empty());
}

TEST(ObjectStore, ParsesAddresses) {
  const StoreAddress s3 = parse_store_address("s3://bucket/a/b/");
  EXPECT_EQ(s3.kind, StoreAddress::Kind::kS3);
  EXPECT_EQ(s3.host, "bucket");
  EXPECT_EQ(s3.path, "a/b");
  const StoreAddress ssh = parse_store_address("ssh://me@host:2222/data/run");
  EXPECT_EQ(ssh.kind, StoreAddress::Kind::kSsh);
  EXPECT_EQ(ssh.host, "me@host");
  EXPECT_EQ(ssh.port, 2222);
  EXPECT_EQ(ssh.path, "/data/run");
  EXPECT_EQ(parse_store_address("ssh://host/~/run").path, "run");
  EXPECT_EQ(parse_store_address("file:///mnt/run").path, "/mnt/run");
  EXPECT_EQ(parse_store_address("../run").path, "../run");
  for (const char* bad : {"s3://", "s3:///x", "s3://KEY:secret@bucket/x", "ssh://host", "gs://b/x",
                          "ssh://me:word@host/x:y", "ssh://-oProxyCommand=x/run", "file://host/x",
                          "ssh://host:99999/x", ""}) {
    const std::string text = thrown<ConfigError>([&] { parse_store_address(bad); });
    EXPECT_TRUE(holds(text, "try: ")) << bad << ": " << text;
    EXPECT_FALSE(holds(text, "secret")) << text;
  }
}

TEST(ObjectStore, KeepsFilesInAFolder) {
  TemporaryFolder folder;
  expect_store(*open_store(parse_store_address("file://" + (folder.path() / "run").string())));
  auto absent = open_store(parse_store_address((folder.path() / "not_mounted" / "run").string()));
  EXPECT_TRUE(holds(thrown<ConfigError>([&] { put_text(*absent, "a", "b"); }), "mounted"));
}

TEST(ObjectStore, KeepsFilesInABucketWithSignaturesThatAreChecked) {
  TemporaryFolder folder;
  fs::create_directories(folder.path() / "bucket");
  S3Environment s3(folder.path());
  expect_store(*open_store(parse_store_address("s3://bucket/some run/a+b")));
  s3.set("AWS_SESSION_TOKEN", "tok/en+==");
  fs::create_directories(folder.path() / "other");
  expect_store(*open_store(parse_store_address("s3://other")));
}

TEST(ObjectStore, KeepsFilesBehindSsh) {
  if (!SshHosts::missing().empty()) GTEST_SKIP() << SshHosts::missing();
  SshHosts hosts(1);
  TemporaryFolder folder;
  // ssh with the configuration of these hosts.
  write_file(folder.path() / "ssh",
             fmt::format("#!/bin/sh\nexec /usr/bin/ssh -F '{}' \"$@\"\n", hosts.config()));
  fs::permissions(folder.path() / "ssh", fs::perms::owner_all);
  const std::string path = std::getenv("PATH");
  ::setenv("PATH", (folder.path().string() + ":" + path).c_str(), 1);
  expect_store(*open_store(parse_store_address("ssh://n0" + folder.path().string() + "/it's run")));
  auto nobody = open_store(parse_store_address("ssh://127.0.0.1:1/tmp/run"));
  EXPECT_TRUE(holds(thrown<MachineError>([&] { put_text(*nobody, "a", "b"); }), "ssh does not"));
  ::setenv("PATH", path.c_str(), 1);
}

TEST(ObjectStore, SendsLargeFilesInPartsAndSurvivesBrokenLines) {
  TemporaryFolder folder;
  fs::create_directories(folder.path() / "bucket");
  S3Environment s3(folder.path());
  auto store = open_store(parse_store_address("s3://bucket/run"), {.part_bytes = 100'000});
  const std::string text = some_bytes(250'001);
  write_file(folder.path() / "file", text);
  s3.server().set_faults(R"({"bucket/run/w": [{"method": "PUT", "cut": 50000},
                             {"method": "PUT", "status": 503, "code": "SlowDown"}]})");
  store->put("w", folder.path() / "file", hash_of(text));
  EXPECT_EQ(read_file(folder.path() / "bucket/run/w"), text);
  s3.server().set_faults(R"({"bucket/run/w": [{"method": "GET", "cut": 70000},
                             {"method": "GET", "cut": 70000}]})");
  fetch_object(*store, {"w", folder.path() / "back", 250'001, hash_of(text)});
  EXPECT_EQ(read_file(folder.path() / "back"), text);
  int ranges = 0;
  for (const std::string& line : s3.server().requests()) ranges += line.ends_with(" 206");
  EXPECT_EQ(ranges, 2);
  // An upload that fails for good is given up, so that nobody pays for its parts.
  s3.server().set_faults(R"({"bucket/run/w": [{"method": "PUT", "status": 507, "times": 9}]})");
  EXPECT_TRUE(holds(thrown<MachineError>([&] { store->put("w", folder.path() / "file", ""); }),
                    "it is full"));
  const auto requests = s3.server().requests();
  EXPECT_TRUE(requests.back().starts_with("DELETE")) << requests.back();
}

TEST(ObjectStore, NoticesBytesThatChangeOnTheWay) {
  TemporaryFolder folder;
  fs::create_directories(folder.path() / "bucket");
  S3Environment s3(folder.path());
  auto store = open_store(parse_store_address("s3://bucket/run"));
  s3.server().set_faults(R"({"bucket/run/a": [{"method": "PUT", "damage": true}]})");
  EXPECT_TRUE(holds(thrown<MachineError>([&] { put_text(*store, "a", "text"); }), "MD5"));
  put_text(*store, "a", "text");
  write_file(folder.path() / "file", "other");
  EXPECT_TRUE(
      holds(thrown<MachineError>([&] { store->put("b", folder.path() / "file", hash_of("text")); }),
            "XAmzContentSHA256Mismatch"));
}

TEST(ObjectStore, SaysWhatIsWrongWithABucket) {
  TemporaryFolder folder;
  fs::create_directories(folder.path() / "bucket");
  S3Environment s3(folder.path());
  const auto put = [](const std::string& address) {
    put_text(*open_store(parse_store_address(address)), "a", "text");
  };
  const auto refused = [&](const std::string& address) {
    return thrown<ConfigError>([&] { put(address); });
  };
  EXPECT_TRUE(holds(refused("s3://absent/run"), "there is no bucket absent"));
  s3.server().set_faults(R"({"*": [{"status": 403, "code": "AccessDenied"}]})");
  EXPECT_TRUE(holds(refused("s3://bucket/run"), "no right to do this"));
  s3.server().set_faults(R"({"*": [{"status": 301, "code": "PermanentRedirect"}]})");
  EXPECT_TRUE(holds(refused("s3://bucket/run"), "the bucket is elsewhere"));
  s3.set("AWS_SESSION_TOKEN", "old");
  EXPECT_TRUE(holds(refused("s3://bucket/run"), "the credentials have expired"));
  s3.clear("AWS_SESSION_TOKEN");
  s3.set("AWS_REGION", "eu-west-3");
  EXPECT_TRUE(holds(refused("s3://bucket/run"), "try: AWS_REGION=us-east-1"));
  s3.set("AWS_REGION", "us-east-1");
  s3.set("AWS_SECRET_ACCESS_KEY", "secret");
  const std::string text = refused("s3://bucket/run");
  EXPECT_TRUE(holds(text, "are not accepted")) << text;
  EXPECT_FALSE(holds(text, "secret")) << text;
  s3.clear("AWS_SECRET_ACCESS_KEY");
  EXPECT_TRUE(holds(refused("s3://bucket/run"), "S3: no credentials"));
  // The same by files.
  write_file(folder.path() / "credentials",
             "[default]\naws_access_key_id = no\n[mine]\naws_access_key_id = AKIDEXAMPLE\n"
             "aws_secret_access_key = wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY\n");
  s3.set("AWS_SHARED_CREDENTIALS_FILE", (folder.path() / "credentials").string());
  s3.set("AWS_PROFILE", "mine");
  put("s3://bucket/run");
  s3.set("AWS_ENDPOINT_URL", "http://127.0.0.1:1");
  EXPECT_TRUE(holds(thrown<MachineError>([&] { put("s3://bucket/run"); }), "cannot be reached"));
}

}  // namespace
}  // namespace lockstep
