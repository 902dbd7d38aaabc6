package schedule

import "testing"

// Every request is either refused with an error or due in the future. None panics
// or hangs.
func FuzzNew(f *testing.F) {
	for _, seed := range [][4]string{
		{"30 8 * * 1-5", "2026-11-21T09:00", "Europe/Berlin", "2027-01-01"},
		{"*/5 0-7/2 ? jan,feb sun-7", "18:30", "new york", ""},
		{"@every 1s", "2026-11-21 09:00 +03:00", "../x", "18:30"},
		{"0 0 30 2 *", "24:00", "UTC+3", "x"},
		{",", "2026-11-21t", "Pacific/Apia", "9999-12-31"},
		{"* * 29 2 7-7", "0000-00-00T00:00", "Etc/GMT-14", "0001-01-01"},
	} {
		f.Add(seed[0], seed[1], seed[2], seed[3])
	}
	f.Fuzz(func(t *testing.T, cron, at, zone, until string) {
		e := env(t)
		message := "m"
		for kind, r := range map[string]Request{
			Once:      {Message: &message, At: &at, Timezone: &zone},
			Recurring: {Message: &message, Cron: &cron, Timezone: &zone, Until: &until},
		} {
			s, _, err := New(kind, r, e)
			if err != nil {
				continue
			}
			if s.Next == nil || !s.Next.After(e.Now) {
				t.Errorf("%s: accepted, due %v", kind, s.Next)
			}
			s.ID = "r1"
			data, err := s.Encode()
			if err != nil {
				t.Fatal(err)
			}
			if _, err := Decode(data); err != nil {
				t.Errorf("its own row is refused: %v", err)
			}
		}
	})
}
