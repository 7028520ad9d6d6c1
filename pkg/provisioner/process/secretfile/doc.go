// Package secretfile keeps what stands for Secrets and ConfigMaps of a namespace where
// there is no cluster: files of a data folder, which only their owner may read.
package secretfile
