#include "data/store/s3_signature.h"

#include <gtest/gtest.h>

namespace lockstep {
namespace {

const char* const kHashOfNothing =
    "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
const AwsSettings kExampleUser{.key = "AKIAIOSFODNN7EXAMPLE",
                               .secret = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"};
constexpr std::time_t kExampleTime = 1369353600;  // 2013-05-24, midnight, UTC

std::vector<std::string> example(const std::string& query) {
  return s3_signature({"GET", "https://examplebucket.s3.amazonaws.com" + query, kHashOfNothing},
                      kExampleUser, kExampleTime);
}

const std::string kScope =
    "Authorization: AWS4-HMAC-SHA256 Credential=AKIAIOSFODNN7EXAMPLE/20130524/us-east-1/s3/"
    "aws4_request,SignedHeaders=host;x-amz-content-sha256;x-amz-date,Signature=";

// "Signature Calculations for the Authorization Header", Amazon S3 API Reference.
TEST(S3Signature, IsThatOfAmazonsExamples) {
  EXPECT_EQ(
      example("/?lifecycle="),
      (std::vector<std::string>{
          "host: examplebucket.s3.amazonaws.com",
          std::string("x-amz-content-sha256: ") + kHashOfNothing, "x-amz-date: 20130524T000000Z",
          kScope + "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543"}));
  EXPECT_EQ(example("/?max-keys=2&prefix=J").back(),
            kScope + "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7");
}

TEST(S3Signature, TakesABucketWithoutASlashForItsRoot) {
  EXPECT_EQ(example("?lifecycle="), example("/?lifecycle="));
}

TEST(S3Signature, SignsTheTokenAndAnEndpointsPort) {
  AwsSettings user = kExampleUser;
  user.token = "tok/en+==";
  const auto lines = s3_signature({"PUT", "http://127.0.0.1:9000/b/k", kHashOfNothing}, user, 0);
  ASSERT_EQ(lines.size(), 5u);
  EXPECT_EQ(lines[0], "host: 127.0.0.1:9000");
  EXPECT_EQ(lines[3], "x-amz-security-token: tok/en+==");
  EXPECT_NE(lines[4].find("=host;x-amz-content-sha256;x-amz-date;x-amz-security-token,"),
            std::string::npos)
      << lines[4];
}

}  // namespace
}  // namespace lockstep
