package main

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/windlass-dev/windlass/api/v1alpha1"
	"github.com/windlass-dev/windlass/internal/local"
)

// instances is how many the function has, all the time.
const instances = 4

// serve runs the Windlass of a name, whose programs are in a folder, prints the URL of
// its function, and stops it when nothing more can be read.
func serve(name, dir string, until io.Reader, out io.Writer) error {
	config := local.DefaultConfig()
	config.DataDir = filepath.Join(dir, "data")
	config.AgentPath = filepath.Join(dir, "podagent")
	config.Listen, config.OpsListen = "127.0.0.1:0", "127.0.0.1:0"
	known := false
	for _, v := range variants {
		if v.name == name {
			v.change(&config)
			known = true
		}
	}
	if !known {
		return fmt.Errorf("there is no Windlass %q", name)
	}
	w, stop, err := local.Start(config, slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn})))
	if err != nil {
		return err
	}
	fn := probe(dir)
	if _, err := w.Store().Apply(fn); err != nil {
		return errors.Join(err, stop())
	}
	fmt.Fprintln(out, w.FunctionURL(fn)+"/work")
	_, _ = io.Copy(io.Discard, until)
	return stop()
}

func probe(dir string) *v1alpha1.Function {
	most := int32(instances)
	fn := &v1alpha1.Function{ObjectMeta: metav1.ObjectMeta{Namespace: v1alpha1.DefaultNamespace, Name: "probe"}}
	fn.Spec.Template.Command = []string{filepath.Join(dir, "probe")}
	fn.Spec.Scaling.MinInstances, fn.Spec.Scaling.MaxInstances = most, &most
	v1alpha1.Default(fn)
	return fn
}
