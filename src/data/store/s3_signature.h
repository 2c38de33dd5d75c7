// Signature Version 4 of requests to S3: "Authenticating Requests: Using the Authorization Header",
// Amazon S3 API Reference. libcurl's own (CURLOPT_AWS_SIGV4) is not used: its versions bring URLs
// into different canonical forms, and 8.14 signs a + in a query wrongly.
#pragma once

#include <ctime>
#include <string>
#include <vector>

#include "data/store/aws_settings.h"

namespace lockstep {

struct SignedRequest {
  std::string method;
  std::string url;     // the path encoded, and the parameters encoded, sorted and each with its '='
  std::string sha256;  // of the body, hexadecimal
};

// Returns the header lines that make `request` one of the owner of the credentials at that time:
// "host: ...", x-amz-content-sha256, x-amz-date, x-amz-security-token for temporary credentials,
// and Authorization. These, but the last, are what is signed.
std::vector<std::string> s3_signature(const SignedRequest& request, const AwsSettings& aws,
                                      std::time_t now);

}  // namespace lockstep
