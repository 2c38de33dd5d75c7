#include "data/parallel/debian_packages.h"

#include <gtest/gtest.h>
#include <sys/mount.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>

#include "data/fetch/archive_entries.h"
#include "data/fetch/http_request.h"
#include "data/parallel/debian_index.h"
#include "support/debian_mirror.h"
#include "support/expect_error.h"
#include "support/local_server.h"

namespace lockstep {
namespace {

using testing::DebianMirrorFolder;

const std::string kDigits(64, 'a');

TEST(DebianIndex, FindsTheIndexInARelease) {
  const std::string release = "Suite: stable\nMD5Sum:\n " + std::string(32, 'b') +
                              " 5 main/binary-amd64/Packages.xz\nSHA256:\n " + kDigits +
                              " 7 main/binary-amd64/Packages\n " + kDigits +
                              "   1234 main/binary-amd64/Packages.xz\nSHA512:\n " + kDigits +
                              " 9 main/binary-amd64/Packages.xz\n";
  FileCheck check = check_in_release(release, "Release", "main/binary-amd64/Packages.xz");
  EXPECT_EQ(check.bytes, 1234);
  EXPECT_EQ(check.sha256, kDigits);
  EXPECT_ERROR(check_in_release(release, "http://m/Release", "main/binary-s390x/Packages.xz"),
               DataError, "http://m/Release: no SHA256 of main/binary-s390x/Packages.xz");
  EXPECT_ERROR(check_in_release("<html>", "Release", "x"), DataError, "no SHA256 of x");
}

std::string paragraph(const std::string& name, const std::string& version,
                      const std::string& more = "") {
  return fmt::format(
      "Package: {0}\nVersion: {1}\nInstalled-Size: 1\nFilename: pool/{0}_{1}_all.deb\nSize: 10\n"
      "SHA256: {2}\n{3}\n",
      name, version, kDigits, more);
}

TEST(DebianIndex, FindsPackagesInTheOrderOfTheirNames) {
  const std::string index = paragraph("a-locales", "1") + paragraph("b", "2") + paragraph("b", "3");
  std::vector<PackageRecord> found = find_in_index(index, "Packages", {"b", "a-locales"});
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0].name, "b");
  EXPECT_EQ(found[0].version, "3");
  EXPECT_EQ(found[0].path, "pool/b_3_all.deb");
  EXPECT_EQ(found[1].check.bytes, 10);
  EXPECT_EQ(found[1].check.sha256, kDigits);
}

TEST(DebianIndex, NamesTheNearestPackage) {
  const std::string index = paragraph("gcc-14-locales", "1") + paragraph("gimp", "2");
  EXPECT_ERROR(find_in_index(index, "Packages", {"gcc-12-locales"}), DataError,
               "Packages: no package gcc-12-locales; did you mean gcc-14-locales?");
  EXPECT_ERROR(find_in_index("", "Packages", {"gimp"}), DataError, "no index of packages");
}

TEST(DebianIndex, RefusesParagraphsThatAreNotWhole) {
  for (const char* bad :
       {"Package: a\nFilename: pool/a_1_all.deb\nSize: 1\n",
        "Package: a\nFilename: pool/a_1_all.deb\nSize: 1\nSHA256: ../x\n",
        "Package: a\nFilename: pool/b_1_all.deb\nSize: 1\nSHA256: aaaa\n", "Package: a\n"}) {
    EXPECT_ERROR(find_in_index(bad, "Packages", {"a"}), DataError, "a without a whole Filename");
  }
}

class DebianPackages : public ::testing::Test {
 protected:
  DebianPackages() : served_(served(), "bookworm") {
    served_.add("words", {{"./usr/share/locale/de/LC_MESSAGES/words.mo", "one"}});
    served_.add("more", {{"./usr/share/locale/de/LC_MESSAGES/more.mo", std::string(100'000, 'x')}});
    served_.publish();
  }

  fs::path served() const { return folder_.path() / "served"; }
  fs::path cache() const { return folder_.path() / "cache"; }
  fs::path file(const std::string& name) const { return cache() / "bookworm" / name; }

  std::vector<fs::path> fetch(const LocalServer& server, const std::vector<std::string>& names,
                              const std::string& suite = "bookworm") const {
    DebianMirror mirror;
    mirror.url = server.url() + "/";
    mirror.suite = suite;
    mirror.download = {.attempts = 3,
                       .first_pause = std::chrono::milliseconds(1),
                       .stall_timeout = std::chrono::seconds(1)};
    return fetch_packages(names, cache(), mirror);
  }
  // Does not compress.
  static std::string noise() {
    std::string out;
    uint32_t state = 1;
    for (int i = 0; i < 60'000; ++i) {
      state = state * 1664525 + 1013904223;
      out += static_cast<char>(state >> 24);
    }
    return out;
  }
  static int64_t count(const LocalServer& server, const std::string& name) {
    const std::vector<std::string> requests = server.requests();
    return std::count_if(requests.begin(), requests.end(), [&](const std::string& request) {
      return request.find(name) != std::string::npos;
    });
  }

  TemporaryFolder folder_;
  DebianMirrorFolder served_;
};

TEST_F(DebianPackages, AreFetchedOnceAndUnpacked) {
  LocalServer server(served());
  std::vector<fs::path> files = fetch(server, {"words", "more"});
  EXPECT_EQ(files, (std::vector{file("words_1.0-1_all.deb"), file("more_1.0-1_all.deb")}));
  unpack_package(files[0], folder_.path() / "out");
  EXPECT_EQ(read_file(folder_.path() / "out/usr/share/locale/de/LC_MESSAGES/words.mo"), "one");
  EXPECT_EQ(server.requests().size(), 4u);
  fetch(server, {"more", "words"});  // all there: nobody is asked
  EXPECT_EQ(server.requests().size(), 4u);
}

TEST_F(DebianPackages, TakeTheIndexFromTheCacheWhileItHolds) {
  LocalServer server(served());
  fetch(server, {"words"});
  fetch(server, {"more"});
  EXPECT_EQ(count(server, "Packages.xz"), 1);
  served_.add("third", {{"a.mo", "3"}});
  served_.publish();
  fetch(server, {"third"});
  EXPECT_EQ(count(server, "Packages.xz"), 2);
  EXPECT_EQ(count(server, "Release"), 3);
}

TEST_F(DebianPackages, ComeThroughABrokenLine) {
  LocalServer server(served(), R"({"dists/bookworm/main/binary-amd64/Packages.xz": [{"cut": 100}],
                                   "pool/main/more_1.0-1_all.deb": [{"cut": 50}, {"status": 503}]})");
  EXPECT_EQ(fetch(server, {"more"}).size(), 1u);
  EXPECT_EQ(count(server, "more_"), 3);
}

TEST_F(DebianPackages, AreRefusedWithWrongChecksums) {
  write_file(served() / "pool/main/other",
             testing::deb_of({{"./usr/share/locale/de/LC_MESSAGES/words.mo", "two"}}));
  LocalServer server(served(),
                     R"({"pool/main/words_1.0-1_all.deb": [{"swap": "pool/main/other"}]})");
  EXPECT_ERROR(fetch(server, {"words"}), DataError, "wrong checksum");
  EXPECT_FALSE(fs::exists(file("words_1.0-1_all.deb")));
  EXPECT_EQ(fetch(server, {"more"}).size(), 1u);  // the others are as good as before
  write_file(served() / "dists/bookworm/main/binary-amd64/Packages.xz",
             testing::xz_of("Package: x"));
  fs::remove_all(cache());
  EXPECT_ERROR(fetch(server, {"more"}), DataError, "Packages.xz");
}

TEST_F(DebianPackages, OfASuiteThatIsNotThereAreAnError) {
  LocalServer server(served());
  EXPECT_ERROR(fetch(server, {"words"}, "potato"), DataError, "looking for the suite potato");
  EXPECT_ERROR(fetch(server, {"word"}), DataError, "no package word; did you mean words?");
}

TEST_F(DebianPackages, NeedTheNetworkOnlyWhenTheyAreNotThere) {
  {
    LocalServer server(served());
    fetch(server, {"words"});
  }
  DebianMirror nowhere;
  nowhere.url = "http://127.0.0.1:1";
  nowhere.download = {.attempts = 2, .first_pause = std::chrono::milliseconds(1)};
  EXPECT_EQ(fetch_packages({"words"}, cache(), nowhere).size(), 1u);
  EXPECT_ERROR(fetch_packages({"more"}, cache(), nowhere), MachineError,
               "http://127.0.0.1:1/dists/bookworm/Release: not fetched after 2 attempts");
}

TEST_F(DebianPackages, SurviveAFullDisk) {
  fs::create_directory(cache());
  if (::mount("tmpfs", cache().c_str(), "tmpfs", 0, "size=16k") != 0) {
    GTEST_SKIP() << "needs root: a small file system to fill";
  }
  served_.add("large", {{"large.mo", noise()}});
  served_.publish();
  LocalServer server(served());
  EXPECT_ERROR(fetch(server, {"large"}), MachineError, "No space left on device");
  EXPECT_EQ(::mount("tmpfs", cache().c_str(), "tmpfs", MS_REMOUNT, "size=1m"), 0);
  EXPECT_EQ(fetch(server, {"large"}).size(), 1u);
  ::umount(cache().c_str());
}

TEST_F(DebianPackages, MustBePackages) {
  const fs::path out = folder_.path() / "out";
  const fs::path bad = folder_.path() / "bad.deb";
  write_file(bad, "no archive");
  EXPECT_ERROR(unpack_package(bad, out), DataError, "remove the file");
  write_file(bad,
             testing::archive_of({{"debian-binary", "2.0\n"}}, archive_write_set_format_ar_svr4));
  EXPECT_ERROR(unpack_package(bad, out), DataError, "no data.tar in it");
  const std::string whole = testing::deb_of({{"a.mo", noise()}});
  write_file(bad, whole.substr(0, whole.size() / 2));
  EXPECT_ERROR(unpack_package(bad, out), DataError, "damaged or cut off");
  write_file(bad, testing::deb_of({{"usr/../../a.mo", "x"}}));
  EXPECT_ERROR(unpack_package(bad, out), DataError, "usr/../../a.mo leads out of the package");
  EXPECT_FALSE(fs::exists(folder_.path() / "a.mo"));
}

// dpkg-deb's own packages, where it is there.
TEST_F(DebianPackages, OfDpkgAreRead) {
  const fs::path tree = folder_.path() / "tree";
  fs::create_directories(tree / "DEBIAN");
  fs::create_directories(tree / "usr/share");
  write_file(tree / "DEBIAN/control",
             "Package: t\nVersion: 1\nArchitecture: all\nMaintainer: t <t@t>\nDescription: t\n");
  write_file(tree / "usr/share/text", "content\n");
  for (const char* compression : {"xz", "gzip", "zstd", "none"}) {
    const fs::path package = folder_.path() / "t.deb";
    const std::string command = fmt::format("dpkg-deb -Z{} -b '{}' '{}' >/dev/null 2>&1",
                                            compression, tree.string(), package.string());
    if (std::system(command.c_str()) != 0) GTEST_SKIP() << "no dpkg-deb";
    const fs::path out = folder_.path() / compression;
    unpack_package(package, out);
    EXPECT_EQ(read_file(out / "usr/share/text"), "content\n") << compression;
  }
}

TEST(CompressedFiles, AreReadWhole) {
  TemporaryFolder folder;
  const fs::path path = folder.path() / "text.xz";
  const std::string text(1'000'000, 'x');
  write_file(path, testing::xz_of(text));
  EXPECT_EQ(read_compressed_file(path), text);
  const std::string bytes = read_file(path);
  write_file(path, bytes.substr(0, bytes.size() - 20));
  EXPECT_ERROR(read_compressed_file(path), DataError, "text.xz: damaged or cut off");
  EXPECT_ERROR(read_compressed_file(folder.path() / "no"), DataError, "no such file");
}

TEST(Certificates, AreThoseOfTheEnvironmentFirst) {
  const char* before = std::getenv("SSL_CERT_FILE");
  const std::string kept = before == nullptr ? "" : before;
  ::setenv("SSL_CERT_FILE", "/somewhere/else.pem", 1);
  EXPECT_EQ(ca_bundle(), "/somewhere/else.pem");
  ::unsetenv("SSL_CERT_FILE");
  ::setenv("CURL_CA_BUNDLE", "/another.pem", 1);
  EXPECT_EQ(ca_bundle(), "/another.pem");
  ::unsetenv("CURL_CA_BUNDLE");
  const std::string system = ca_bundle();
  EXPECT_TRUE(system.empty() || fs::exists(system)) << system;
  if (!kept.empty()) ::setenv("SSL_CERT_FILE", kept.c_str(), 1);
}

}  // namespace
}  // namespace lockstep
