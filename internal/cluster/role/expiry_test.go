package role

import (
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/windlass-dev/windlass/internal/mtls"
	"github.com/windlass-dev/windlass/internal/mtls/testca"
)

func TestS16TheEndOfTheCertificateInUseIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ca, dir := testca.New(t), t.TempDir()
		renew := func(ends time.Time) {
			ca.Write(t, dir, testca.Certificate{Names: []string{mtls.Domain("a.windlass").Gateway()}, NotAfter: ends})
		}
		first, second := time.Now().Add(2*time.Hour), time.Now().Add(3*time.Hour)
		renew(first)
		tls, err := mtls.Load(dir, slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		registry := prometheus.NewRegistry()
		RegisterExpiry(registry, tls)
		for _, want := range []time.Time{first, second} {
			renew(want)
			time.Sleep(time.Minute)
			families, err := registry.Gather()
			if err != nil || len(families) != 1 || families[0].GetName() != "windlass_tls_certificate_expiry_timestamp_seconds" {
				t.Fatalf("told is %v, %v", families, err)
			}
			if got := families[0].GetMetric()[0].GetGauge().GetValue(); got != float64(want.Unix()) {
				t.Errorf("the certificate ends at %v, want %v", got, want.Unix())
			}
		}
	})
}
