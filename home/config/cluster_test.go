package config_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/switchboard-run/switchboard/home/config"
)

func TestTheSettingsOfANode(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "cluster.yaml")
	if c, err := config.LoadCluster(file); err != nil || *c != (config.Cluster{Cell: "main", Standbys: 8}) {
		t.Errorf("without a file: %+v, %v", c, err)
	}
	for text, problem := range map[string]string{
		"node: kitchen\nlisten: kitchen.lan:7718\n": "",
		"listen: \":7718\"\n":                       "other machines can reach",
		"listen: kitchen\n":                         "other machines can reach",
		"timezone: Europe/Berlin\n":                 "timezone",
	} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := config.LoadCluster(file)
		if problem == "" && err != nil || problem != "" && (err == nil || !strings.Contains(err.Error(), problem)) {
			t.Errorf("%s: %v", text, err)
		}
	}
}
