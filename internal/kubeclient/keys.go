package kubeclient

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/windlass-dev/windlass/pkg/gateway/auth"
	"github.com/windlass-dev/windlass/pkg/invocation"
)

// KeysSecret has the list of API keys, in the namespace of Windlass. Gateways
// mount it.
const KeysSecret = "windlass-keys"

// keyList is the list of API keys of the Windlass in a cluster.
type keyList struct{ components }

// Keys returns the list of API keys, empty if it does not exist. namespace is the one that
// Windlass runs in; if it is empty, Keys finds it.
func (k *keyList) Keys(ctx context.Context, namespace string) ([]byte, error) {
	secret, err := k.keysSecret(ctx, namespace)
	if err != nil {
		return nil, err
	}
	return secret.Data[auth.KeysFileName], nil
}

// EditKeys replaces the list of API keys by the result of edit. It calls edit again if
// somebody else has changed the list meanwhile.
func (k *keyList) EditKeys(ctx context.Context, namespace string, edit func([]byte) ([]byte, error)) error {
	return retry.OnError(retry.DefaultRetry, isConflict, func() error {
		secret, err := k.keysSecret(ctx, namespace)
		if err != nil {
			return err
		}
		list, err := edit(secret.Data[auth.KeysFileName])
		if err != nil {
			return err
		}
		if secret.Data == nil {
			secret.Data = map[string][]byte{}
		}
		secret.Data[auth.KeysFileName] = list
		if secret.ResourceVersion == "" {
			err = k.kube.Create(ctx, secret)
		} else {
			err = k.kube.Update(ctx, secret)
		}
		if err == nil || isConflict(err) {
			return err
		}
		return k.explainKeys(secret.Namespace, err)
	})
}

// isConflict reports that somebody else has written first.
func isConflict(err error) bool { return apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) }

// keysSecret returns the Secret, or a new one that is not stored yet.
func (k *keyList) keysSecret(ctx context.Context, namespace string) (*corev1.Secret, error) {
	if namespace == "" {
		// Keys must be revoked also while no gateway is ready.
		pods, err := k.allPods(ctx, gateways, "")
		if err != nil {
			return nil, err
		}
		if len(pods) == 0 {
			return nil, &Error{Reason: ReasonNoPod, Message: k.noneReady(gateways, "", 0) + ", or name its namespace with --windlass-namespace"}
		}
		namespace = pods[0].Namespace
	}
	secret := &corev1.Secret{}
	err := k.kube.Get(ctx, client.ObjectKey{Namespace: namespace, Name: KeysSecret}, secret)
	if apierrors.IsNotFound(err) {
		return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: KeysSecret, Labels: map[string]string{"app.kubernetes.io/name": "windlass"},
		}}, nil
	}
	if err != nil {
		return nil, k.explainKeys(namespace, err)
	}
	return secret, nil
}

func (k *keyList) explainKeys(namespace string, err error) error {
	return fmt.Errorf("the Secret %s with the API keys: %w", KeysSecret, k.explain(invocation.FunctionKey{Namespace: namespace}, err))
}
