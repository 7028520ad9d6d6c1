package cli

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"net/url"
	"strings"

	"golang.org/x/net/http/httpproxy"

	"github.com/windlass-dev/windlass/internal/localapi"
	"github.com/windlass-dev/windlass/pkg/gateway/address"
	"github.com/windlass-dev/windlass/pkg/invocation"
)

// configuredGateway is the gateway of the environment, or else of the settings; empty if
// there is none.
func (f *finder) configuredGateway() (string, error) {
	gateway := f.getenv(gatewayVariable)
	if gateway == "" {
		settings, err := f.settings()
		if err != nil {
			return "", err
		}
		gateway = settings.Gateway
	}
	if gateway == "" {
		return "", nil
	}
	return gateway, checkGateway(gateway)
}

// localGateway is the gateway of the Windlass on this machine; empty if there is none.
func (f *finder) localGateway(ctx context.Context) (string, error) {
	dir, err := f.resolveDataDir()
	if err != nil || f.plugin {
		return "", nil //nolint:nilerr // Nothing can run here.
	}
	info, err := localapi.NewClient(dir).Info(ctx)
	var absent *localapi.NotRunningError
	if errors.As(err, &absent) {
		return "", nil
	}
	return info.GatewayURL, err
}

// gatewayVariable of the environment is the URL of the gateway.
const gatewayVariable = "WINDLASS_GATEWAY"

// checkGateway refuses what is no URL of a gateway.
func checkGateway(gateway string) error {
	u, err := url.Parse(gateway)
	if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" || u.RawQuery != "" {
		return usagef("the gateway %q is no URL; write for example http://127.0.0.1:8080", gateway)
	}
	return nil
}

// proxy is the proxy of the environment for a request, as other programs on this machine take it.
func (h *host) proxy(request *http.Request) (*url.URL, error) {
	env := func(name string) string { return cmp.Or(h.getenv(name), h.getenv(strings.ToLower(name))) }
	config := httpproxy.Config{HTTPProxy: env("HTTP_PROXY"), HTTPSProxy: env("HTTPS_PROXY"), NoProxy: env("NO_PROXY")}
	return config.ProxyFunc()(request.URL)
}

// gatewayURL is where a gateway has a function.
func gatewayURL(gateway string, key invocation.FunctionKey) string {
	return strings.TrimRight(gateway, "/") + address.Path(key)
}
