package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"path"
	"path/filepath"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/partial"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"sigs.k8s.io/yaml"
)

// chartMeta is what matters here of Chart.yaml.
type chartMeta struct {
	Name        string `json:"name"`
	Version     string `json:"version"`
	AppVersion  string `json:"appVersion"`
	Description string `json:"description"`
}

// chart packs the chart. Helm would put the time of the day into it.
func (r *release) chart(context.Context) error {
	folder := filepath.Join(r.source, "charts", "windlass")
	ignored, err := filesIn(folder, func(below string) bool { return below != ".helmignore" })
	if err != nil || len(ignored) != 1 {
		return fmt.Errorf("there is no .helmignore in %s: %w", folder, err)
	}
	skip := ignoring(string(ignored[0].content))
	files, err := filesIn(folder, skip)
	if err != nil {
		return err
	}
	packed, meta, err := chartOf(files, r.plain())
	if err != nil {
		return err
	}
	content, err := archiveOf(packed, r.at)
	if err := r.write(fmt.Sprintf("windlass-%s.tgz", r.plain()), content, err); err != nil {
		return err
	}
	artefact, err := artefactOf(meta, content)
	if err != nil {
		return err
	}
	digest, err := artefact.Digest()
	r.subjects = append(r.subjects, subject{"chart:windlass", map[string]string{"sha256": digest.Hex}})
	r.artefact = artefact
	return err
}

// chartOf are the files as a chart's archive has them, and its Chart.yaml, which must be of
// the version: what it says of images and examples is written there by hand.
func chartOf(files []file, version string) (packed []file, meta []byte, err error) {
	for _, f := range files {
		if f.name == "Chart.yaml" {
			meta = f.content
		}
		packed = append(packed, file{path.Join("windlass", f.name), f.mode, f.content})
	}
	var known chartMeta
	if err := yaml.Unmarshal(meta, &known); err != nil {
		return nil, nil, fmt.Errorf("Chart.yaml: %w", err)
	}
	if known.Version != version || known.AppVersion != version {
		return nil, nil, fmt.Errorf("Chart.yaml has version %s and appVersion %s: make both %s, also in its annotations, and commit that",
			known.Version, known.AppVersion, version)
	}
	return packed, meta, nil
}

// ignoring reads a .helmignore: patterns of names, of paths if they have a slash, and of
// folders if they end with one.
func ignoring(text string) func(below string) bool {
	var patterns []string
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
			patterns = append(patterns, line)
		}
	}
	matches := func(pattern, name string) bool {
		ok, err := path.Match(pattern, name)
		return ok && err == nil
	}
	return func(below string) bool {
		for _, p := range patterns {
			folder, ofFolder := strings.CutSuffix(p, "/")
			switch {
			case ofFolder:
				for dir := path.Dir(below); dir != "."; dir = path.Dir(dir) {
					if matches(folder, path.Base(dir)) {
						return true
					}
				}
			case strings.Contains(p, "/"):
				if matches(p, below) {
					return true
				}
			case matches(p, path.Base(below)):
				return true
			}
		}
		return false
	}
}

const (
	chartConfig  types.MediaType = "application/vnd.cncf.helm.config.v1+json"
	chartContent types.MediaType = "application/vnd.cncf.helm.chart.content.v1.tar+gzip"
)

// artefact is a chart in the form in which Helm keeps it in a registry. What helm push
// makes has the time of the day in it.
type artefact struct {
	config, manifest []byte
	layer            v1.Layer
}

func artefactOf(meta, content []byte) (v1.Image, error) {
	config, err := yaml.YAMLToJSON(meta)
	if err != nil {
		return nil, err
	}
	var known chartMeta
	if err := yaml.Unmarshal(meta, &known); err != nil {
		return nil, err
	}
	a := artefact{config: config, layer: static.NewLayer(content, chartContent)}
	digest, size, err := v1.SHA256(bytes.NewReader(config))
	if err != nil {
		return nil, err
	}
	layer, err := partial.Descriptor(a.layer)
	if err != nil {
		return nil, err
	}
	a.manifest, err = json.Marshal(v1.Manifest{
		SchemaVersion: 2, MediaType: types.OCIManifestSchema1,
		Config: v1.Descriptor{MediaType: chartConfig, Digest: digest, Size: size},
		Layers: []v1.Descriptor{*layer},
		Annotations: map[string]string{
			"org.opencontainers.image.title": known.Name, "org.opencontainers.image.version": known.Version,
			"org.opencontainers.image.description": known.Description,
		},
	})
	if err != nil {
		return nil, err
	}
	return partial.CompressedToImage(a)
}

func (a artefact) RawConfigFile() ([]byte, error)                         { return a.config, nil }
func (a artefact) RawManifest() ([]byte, error)                           { return a.manifest, nil }
func (a artefact) MediaType() (types.MediaType, error)                    { return types.OCIManifestSchema1, nil }
func (a artefact) LayerByDigest(v1.Hash) (partial.CompressedLayer, error) { return a.layer, nil }
