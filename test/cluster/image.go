package cluster

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"runtime"
)

// WriteImage writes an image archive that LoadImage takes: a static program at
// /<name>, run as its only command, under the image's reference.
func WriteImage(archive, reference, name, program string) error {
	content, err := os.ReadFile(program)
	if err != nil {
		return err
	}
	layer, err := tarball(file{name, 0o755, content})
	if err != nil {
		return err
	}
	sum := sha256.Sum256(layer)
	config := object{
		"architecture": runtime.GOARCH,
		"os":           "linux",
		"config":       object{"Entrypoint": []string{"/" + name}, "WorkingDir": "/"},
		"rootfs":       object{"type": "layers", "diff_ids": []string{"sha256:" + hex.EncodeToString(sum[:])}},
	}
	manifest, err := json.Marshal([]object{{
		"Config": "config.json", "RepoTags": []string{reference}, "Layers": []string{"layer.tar"},
	}})
	if err != nil {
		return err
	}
	image, err := tarball(
		file{"config.json", 0o644, config.render()},
		file{"layer.tar", 0o644, layer},
		file{"manifest.json", 0o644, manifest},
	)
	if err != nil {
		return fmt.Errorf("image %s: %w", reference, err)
	}
	return os.WriteFile(archive, image, 0o644)
}

type file struct {
	name    string
	mode    int64
	content []byte
}

func tarball(files ...file) ([]byte, error) {
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	for _, f := range files {
		if err := w.WriteHeader(&tar.Header{Name: f.name, Mode: f.mode, Size: int64(len(f.content))}); err != nil {
			return nil, err
		}
		if _, err := w.Write(f.content); err != nil {
			return nil, err
		}
	}
	err := w.Close()
	return out.Bytes(), err
}
