package tb

import "testing"

func TestApplyStartsFromTheDefaults(t *testing.T) {
	s, err := Apply(Option{}, WithMaxKeys(5), WithMaxKeys(9), WithOverflow(RefuseNew))
	if err != nil || s.Now != nil || s.MaxKeys != 9 || s.Overflow != RefuseNew {
		t.Errorf("got %+v, %v, want 9 keys, RefuseNew and no clock", s, err)
	}
	if s, err := Apply(WithMaxKeys(maxMaxKeys)); err != nil || s.MaxKeys != 1<<30 {
		t.Errorf("with the most keys: %+v, %v", s, err)
	}
	if s, _ := Apply(); s.MaxKeys != DefaultMaxKeys || s.Overflow != ForgiveLeast {
		t.Errorf("without options: got %+v, want the defaults", s)
	}
}
