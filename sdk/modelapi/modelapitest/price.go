package modelapitest

import (
	"reflect"
	"testing"

	"github.com/switchboard-run/switchboard/sdk/modelapi"
)

// prices tests what a server's list may tell of prices, as OpenRouter does: US dollars for
// a token, in a text.
func (s Subject) prices(t *testing.T) {
	for name, tt := range map[string]struct {
		told any
		want *modelapi.Price
	}{
		"texts": {map[string]any{"prompt": "0.0000003", "completion": "0.0000012", "input_cache_read": "0.00000007",
			"request": "0"}, &modelapi.Price{Input: 0.3, Cached: 0.07, Output: 1.2}},
		"numbers, no cache": {map[string]any{"prompt": 3e-6, "completion": 15e-6},
			&modelapi.Price{Input: 3, Cached: 3, Output: 15}},
		"free":        {map[string]any{"prompt": "0", "completion": "0"}, &modelapi.Price{}},
		"it depends":  {map[string]any{"prompt": "-1", "completion": "-1"}, nil},
		"one only":    {map[string]any{"prompt": "0.1"}, nil},
		"words":       {map[string]any{"prompt": "cheap", "completion": "NaN"}, nil},
		"huge":        {map[string]any{"prompt": "1e300", "completion": "1e-6"}, nil},
		"a text":      {"free", nil},
		"null":        {nil, nil},
		"wrong types": {map[string]any{"prompt": []int{1}, "completion": map[string]any{}}, nil},
	} {
		f := s.start(t)
		f.OnlyModels("test-model")
		f.ListAs(tells("pricing", tt.told))
		all, err := s.connect(t, withKey(f.BaseURL()), testKey).List(t.Context())
		if err != nil || len(all) != 1 || !reflect.DeepEqual(all[0].Price, tt.want) {
			t.Errorf("%s: got %+v, %v, want %+v", name, all, err, tt.want)
		}
	}
}
