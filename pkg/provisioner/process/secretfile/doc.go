// Package secretfile replaces the Secrets and ConfigMaps of a namespace where no cluster exists:
// it keeps them as files of a data folder that only their owner may read.
package secretfile
