package cluster

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/resource"
)

// Bytes is an amount of memory in bytes, which people write as 64Mi.
type Bytes int64

// Set implements pflag.Value.
func (b *Bytes) Set(amount string) error {
	q, err := resource.ParseQuantity(amount)
	if err != nil || q.Value() < 1 {
		return fmt.Errorf("%q is no amount of memory: write for example 64Mi", amount)
	}
	*b = Bytes(q.Value())
	return nil
}

// String implements pflag.Value.
func (b *Bytes) String() string { return resource.NewQuantity(int64(*b), resource.BinarySI).String() }

// Type implements pflag.Value.
func (*Bytes) Type() string { return "amount" }
