package cli

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/windlass-dev/windlass/pkg/control"
	"github.com/windlass-dev/windlass/pkg/invoke"
)

const (
	// checkTime is how long check tries by default, and checkPause how long
	// it waits between two tries.
	checkTime  = 10 * time.Second
	checkPause = 250 * time.Millisecond
)

func (a *app) checkCommand() *cobra.Command {
	var gateway string
	var timeout time.Duration
	cmd := &cobra.Command{
		Use:   "check [--gateway URL] [--timeout TIME]",
		Short: "Check that a gateway answers",
		Long: `Check that a gateway answers. No function is called. The gateway is --gateway,
$WINDLASS_GATEWAY, or that of the Windlass on this machine.`,
		Example: `  windlass check --gateway http://127.0.0.1:8080`,
		Args:    noArgs,
		RunE: run(func(cmd *cobra.Command, _ []string) error {
			if gateway == "" {
				var err error
				if gateway, err = a.settledGateway(); err != nil {
					return err
				}
			}
			if gateway == "" {
				gateway = a.localGateway(cmd.Context())
			}
			if gateway == "" {
				return usagef("which gateway? name its URL with --gateway or $%s", gatewayVariable)
			}
			if err := checkGateway(gateway); err != nil {
				return err
			}
			if timeout <= 0 {
				return usagef("--timeout %s must be more than 0; write for example --timeout 10s", timeout)
			}
			ctx, cancel := context.WithTimeout(cmd.Context(), timeout)
			defer cancel()
			return a.check(ctx, strings.TrimRight(gateway, "/"))
		}),
	}
	cmd.Flags().StringVar(&gateway, "gateway", "", "`URL` of the gateway, such as http://127.0.0.1:8080")
	cmd.Flags().DurationVar(&timeout, "timeout", checkTime, "longest `time` to try")
	return cmd
}

// settledGateway is the gateway of the environment, or else of the settings; empty if
// there is none.
func (a *app) settledGateway() (string, error) {
	gateway := a.getenv(gatewayVariable)
	if gateway == "" {
		settings, err := a.settings()
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
func (a *app) localGateway(ctx context.Context) string {
	dir, err := a.resolveDataDir()
	if err != nil || a.plugin {
		return ""
	}
	info, err := control.NewClient(dir).Info(ctx)
	if err != nil {
		return ""
	}
	return info.GatewayURL
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

// check tries until the gateway answers or ctx ends.
func (a *app) check(ctx context.Context, gateway string) error {
	var last error
	for {
		began := a.now()
		err := ask(ctx, gateway)
		if err == nil {
			fmt.Fprintf(a.Out, "the gateway at %s answers, in %s\n", gateway, a.now().Sub(began).Round(100*time.Microsecond))
			return nil
		}
		if last == nil || ctx.Err() == nil {
			last = err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("the gateway at %s does not answer: %w; see that it runs and that this is its URL", gateway, last)
		case <-time.After(checkPause):
		}
	}
}

// ask makes a request that runs nothing, and knows a gateway by its refusal.
func ask(ctx context.Context, gateway string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, gateway+"/", nil)
	if err != nil {
		return err
	}
	response, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(request)
	if err != nil {
		return withoutRequest(err)
	}
	defer response.Body.Close()
	if invoke.Executed(response.Header.Get(invoke.HeaderExecuted)) != invoke.ExecutedNo {
		return fmt.Errorf("something else answers %s there", response.Status)
	}
	return nil
}

// withoutRequest takes off what the reader knows: the URL.
func withoutRequest(err error) error {
	var of *url.Error
	if errors.As(err, &of) {
		return of.Err
	}
	return err
}
