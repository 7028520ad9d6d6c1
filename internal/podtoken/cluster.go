package podtoken

import (
	"context"
	"fmt"

	"k8s.io/client-go/rest"
)

// ClusterKeys reads the keys from the API server. Every service account may do
// that, unless an administrator has removed the cluster role
// system:service-account-issuer-discovery.
type ClusterKeys struct {
	// Client is any client of the API server, such as that of the core group.
	Client rest.Interface
}

// Keys implements tokens.KeySource.
func (c ClusterKeys) Keys(ctx context.Context) ([]byte, error) {
	keys, err := c.Client.Get().AbsPath("/openid/v1/jwks").SetHeader("Accept", "application/jwk-set+json").Do(ctx).Raw()
	if err != nil {
		return nil, fmt.Errorf("podtoken: read /openid/v1/jwks from the API server: %w", err)
	}
	return keys, nil
}
