package kubeclient

import (
	"context"
	"io"
	"net/http"
	"net/url"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/portforward"
	"k8s.io/client-go/transport/spdy"
	"k8s.io/streaming/pkg/httpstream"
)

// LogOpener opens the log of a pod's container.
type LogOpener interface {
	OpenLog(ctx context.Context, namespace, pod string, options *corev1.PodLogOptions) (io.ReadCloser, error)
}

// StreamDialer makes a connection whose streams lead to a pod's ports. It may take as long as the network
// does: a Tunnel waits for it no longer than its context.
type StreamDialer interface {
	DialPod(namespace, pod string) (httpstream.Connection, error)
}

// podClient asks the API server.
type podClient struct {
	config *rest.Config
	rest   rest.Interface
}

func newPodClient(config *rest.Config) (*podClient, error) {
	config = rest.CopyConfig(config)
	config.APIPath, config.GroupVersion = "/api", &corev1.SchemeGroupVersion
	config.NegotiatedSerializer = serializer.NewCodecFactory(Scheme()).WithoutConversion()
	restClient, err := rest.RESTClientFor(config)
	if err != nil {
		return nil, err
	}
	return &podClient{config: config, rest: restClient}, nil
}

// OpenLog implements LogOpener.
func (c *podClient) OpenLog(ctx context.Context, namespace, pod string, options *corev1.PodLogOptions) (io.ReadCloser, error) {
	return c.rest.Get().Namespace(namespace).Resource("pods").Name(pod).SubResource("log").
		VersionedParams(options, runtime.NewParameterCodec(Scheme())).Stream(ctx)
}

// DialPod implements StreamDialer: over a WebSocket or, where the server or a
// proxy on the way does not know that, over SPDY.
func (c *podClient) DialPod(namespace, pod string) (httpstream.Connection, error) {
	at := c.rest.Post().Namespace(namespace).Resource("pods").Name(pod).SubResource("portforward").URL()
	over, err := c.dialers(at)
	if err != nil {
		return nil, err
	}
	conn, _, err := over.Dial(portforward.PortForwardProtocolV1Name)
	return conn, err
}

func (c *podClient) dialers(at *url.URL) (httpstream.Dialer, error) {
	transport, upgrader, err := spdy.RoundTripperFor(c.config)
	if err != nil {
		return nil, err
	}
	fallback := spdy.NewDialerForStreaming(upgrader, &http.Client{Transport: transport}, http.MethodPost, at)
	socket, err := portforward.NewSPDYOverWebsocketDialerForStreaming(at, c.config)
	if err != nil {
		return nil, err
	}
	return portforward.NewFallbackDialerForStreaming(socket, fallback, func(err error) bool {
		return httpstream.IsUpgradeFailure(err) || httpstream.IsHTTPSProxyError(err)
	}), nil
}
