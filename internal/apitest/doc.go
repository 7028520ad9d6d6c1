// Package apitest gives tests a real Kubernetes API: a kube-apiserver and an etcd
// without nodes. Where their programs are missing, the test is skipped and says how
// to build them.
package apitest
