// Answers of an S3 server in XML, and names in addresses.
#include "data/store/s3_request.h"
#include "fuzz.h"

FUZZ(bytes) {
  const std::string text(bytes);
  for (const char* name :
       {"Code", "Message", "UploadId", "Contents", "Key", "NextContinuationToken"}) {
    lockstep::use(lockstep::S3Answer::element_of(text, name));
  }
  lockstep::use(lockstep::uri_decoded(text));
}
