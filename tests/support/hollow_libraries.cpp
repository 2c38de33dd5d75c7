// NCCL, cuBLAS and cuDNN of the GPU without a GPU (support/hollow_cuda.cpp).
#include <cublasLt.h>
#include <cublas_v2.h>
#include <cuda_runtime_api.h>
#include <cudnn.h>
#include <nccl.h>

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "support/hollow_cuda.h"

namespace {

using hollow::asked;

std::atomic<int64_t> reduces{0};

bool fails(const char* how) {
  const char* text = std::getenv("HOLLOW_CUDA_FAILS");
  return hollow::is_meant() && text != nullptr && std::strcmp(text, how) == 0;
}

template <class Handle>
void make(Handle* out) {
  *out = static_cast<Handle>(std::calloc(1, 64));
}

}  // namespace

struct ncclComm {
  int rank, size;
};

extern "C" {

// --- NCCL

ncclResult_t ncclGetVersion(int* version) {
  *version = NCCL_VERSION_CODE;
  return ncclSuccess;
}
ncclResult_t ncclGetUniqueId(ncclUniqueId* id) {
  std::memset(id, 7, sizeof *id);
  return ncclSuccess;
}
ncclResult_t ncclCommInitRankConfig(ncclComm_t* out, int size, ncclUniqueId, int rank,
                                    ncclConfig_t*) {
  *out = new ncclComm{rank, size};
  return ncclSuccess;
}
ncclResult_t ncclCommGetAsyncError(ncclComm_t, ncclResult_t* result) {
  const bool late = fails("async") && reduces >= asked("HOLLOW_CUDA_REDUCE", INT64_MAX);
  *result = late ? ncclRemoteError : ncclSuccess;
  return ncclSuccess;
}
ncclResult_t ncclCommAbort(ncclComm_t) {
  hollow::hangs = false;
  return ncclSuccess;
}
ncclResult_t ncclCommCount(const ncclComm_t group, int* size) {
  *size = group->size;
  return ncclSuccess;
}
ncclResult_t ncclCommUserRank(const ncclComm_t group, int* rank) {
  *rank = group->rank;
  return ncclSuccess;
}
const char* ncclGetErrorString(ncclResult_t) { return "the hollow network is down"; }
const char* ncclGetLastError(ncclComm_t) { return ""; }
ncclResult_t ncclAllReduce(const void* from, void* to, std::size_t, ncclDataType_t, ncclRedOp_t,
                           ncclComm_t, cudaStream_t) {
  hollow::count("ncclAllReduce");
  if (!hollow::is_on_device(from) || !hollow::is_on_device(to)) return ncclInvalidArgument;
  if (++reduces != asked("HOLLOW_CUDA_REDUCE", 0)) return ncclSuccess;
  if (fails("hang")) hollow::hangs = true;
  return fails("call") ? ncclSystemError : ncclSuccess;
}

// --- cuBLAS

cublasStatus_t cublasCreate_v2(cublasHandle_t* out) {
  make(out);
  return CUBLAS_STATUS_SUCCESS;
}
const char* cublasGetStatusString(cublasStatus_t) { return "an error of the hollow cuBLAS"; }
cublasStatus_t cublasGetPointerMode_v2(cublasHandle_t, cublasPointerMode_t* mode) {
  *mode = CUBLAS_POINTER_MODE_HOST;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasGetMathMode(cublasHandle_t, cublasMath_t* mode) {
  *mode = CUBLAS_DEFAULT_MATH;
  return CUBLAS_STATUS_SUCCESS;
}
std::size_t cublasLtGetVersion() { return CUBLAS_VERSION; }
cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t* out, cublasComputeType_t,
                                        cudaDataType_t) {
  make(out);
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t* out, cudaDataType, uint64_t,
                                          uint64_t, int64_t) {
  make(out);
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t* out) {
  make(out);
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t, cublasLtMatmulDesc_t,
                                              cublasLtMatrixLayout_t, cublasLtMatrixLayout_t,
                                              cublasLtMatrixLayout_t, cublasLtMatrixLayout_t,
                                              cublasLtMatmulPreference_t, int,
                                              cublasLtMatmulHeuristicResult_t* results,
                                              int* number) {
  results[0] = {};
  *number = 1;
  return CUBLAS_STATUS_SUCCESS;
}

// --- cuDNN

std::size_t cudnnGetVersion() { return CUDNN_VERSION; }
std::size_t cudnnGetCudartVersion() { return CUDART_VERSION; }
const char* cudnnGetErrorString(cudnnStatus_t) { return "an error of the hollow cuDNN"; }
void cudnnGetLastErrorString(char* message, std::size_t length) {
  if (length > 0) *message = 0;
}
cudnnStatus_t cudnnCreate(cudnnHandle_t* out) {
  make(out);
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnCreateTensorDescriptor(cudnnTensorDescriptor_t* out) {
  make(out);
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnGetBatchNormalizationForwardTrainingExWorkspaceSize(
    cudnnHandle_t, cudnnBatchNormMode_t, cudnnBatchNormOps_t, const cudnnTensorDescriptor_t,
    const cudnnTensorDescriptor_t, const cudnnTensorDescriptor_t, const cudnnTensorDescriptor_t,
    const cudnnActivationDescriptor_t, std::size_t* bytes) {
  *bytes = 0;
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnGetBatchNormalizationBackwardExWorkspaceSize(
    cudnnHandle_t, cudnnBatchNormMode_t, cudnnBatchNormOps_t, const cudnnTensorDescriptor_t,
    const cudnnTensorDescriptor_t, const cudnnTensorDescriptor_t, const cudnnTensorDescriptor_t,
    const cudnnTensorDescriptor_t, const cudnnTensorDescriptor_t, const cudnnActivationDescriptor_t,
    std::size_t* bytes) {
  *bytes = 0;
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnGetBatchNormalizationTrainingExReserveSpaceSize(
    cudnnHandle_t, cudnnBatchNormMode_t, cudnnBatchNormOps_t, const cudnnActivationDescriptor_t,
    const cudnnTensorDescriptor_t, std::size_t* bytes) {
  *bytes = 0;
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnBackendCreateDescriptor(cudnnBackendDescriptorType_t,
                                           cudnnBackendDescriptor_t* out) {
  make(out);
  return CUDNN_STATUS_SUCCESS;
}
// Each list has one entry, each number is 0.
cudnnStatus_t cudnnBackendGetAttribute(const cudnnBackendDescriptor_t, cudnnBackendAttributeName_t,
                                       cudnnBackendAttributeType_t type, int64_t wanted,
                                       int64_t* number, void* values) {
  if (number != nullptr) *number = 1;
  const bool is_callers = type == CUDNN_TYPE_BACKEND_DESCRIPTOR;
  if (values == nullptr || wanted < 1 || is_callers) return CUDNN_STATUS_SUCCESS;
  const bool is_byte = type == CUDNN_TYPE_BOOLEAN || type == CUDNN_TYPE_CHAR;
  const bool is_wide = type == CUDNN_TYPE_INT64 || type == CUDNN_TYPE_DOUBLE ||
                       type == CUDNN_TYPE_HANDLE || type == CUDNN_TYPE_VOID_PTR;
  std::memset(values, 0, is_byte ? 1 : is_wide ? 8 : 4);
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnBackendExecute(cudnnHandle_t, cudnnBackendDescriptor_t,
                                  cudnnBackendDescriptor_t) {
  hollow::count("cudnnBackendExecute");
  return CUDNN_STATUS_SUCCESS;
}

// --- Names of errors, for messages

const char* cusparseGetErrorString(int) { return "an error of the hollow cuSPARSE"; }
const char* nvrtcGetErrorString(int) { return "an error of the hollow compiler"; }
}
