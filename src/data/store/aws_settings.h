// Credentials, region and endpoint for S3, found where Amazon's own tools look for them.
#pragma once

#include <string>

namespace lockstep {

struct AwsSettings {
  std::string key, secret, token;  // token: of temporary credentials, else empty
  std::string region = "us-east-1";
  std::string endpoint;  // "http://HOST[:PORT]"; empty: Amazon's of the region
  std::string source;    // where the credentials are from, for messages
};

// Reads, in this order: AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_SESSION_TOKEN; the profile
// AWS_PROFILE ("default") of AWS_SHARED_CREDENTIALS_FILE (~/.aws/credentials) and AWS_CONFIG_FILE
// (~/.aws/config); the role of the instance, asked of its metadata server by IMDSv2 (1 s to reach
// it; not with AWS_EC2_METADATA_DISABLED=true) and kept until shortly before it expires. Region:
// AWS_REGION, AWS_DEFAULT_REGION, the profile's. Endpoint: AWS_ENDPOINT_URL_S3, AWS_ENDPOINT_URL,
// the profile's endpoint_url. Throws ConfigError when there are no credentials.
AwsSettings find_aws_settings();

}  // namespace lockstep
