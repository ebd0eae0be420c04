//! Keys made for these tests, and used nowhere else.

pub(super) const SECRET: &str = "0123456789abcdef0123456789abcdef";
pub(super) const P256_PRIVATE: &str = "-----BEGIN PRIVATE KEY-----
MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQguVNZMSjEwqJX7yGt
VjwAVleULRlBoPFds2y/nslGt+qhRANCAAQHfnHsZ99todte9QDCf+wmp4lpVxRu
kDxYj3eYSgixR/aPSLAT0dOhmJv2Ql1Cu5eRPHluUUE0C9XhLh2JxjJo
-----END PRIVATE KEY-----
";
pub(super) const P256_PUBLIC: &str = "-----BEGIN PUBLIC KEY-----
MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEB35x7GffbaHbXvUAwn/sJqeJaVcU
bpA8WI93mEoIsUf2j0iwE9HToZib9kJdQruXkTx5blFBNAvV4S4dicYyaA==
-----END PUBLIC KEY-----
";
pub(super) const P384_PUBLIC: &str = "-----BEGIN PUBLIC KEY-----
MHYwEAYHKoZIzj0CAQYFK4EEACIDYgAE/2qTpda/iz5O/C+/crxJRlPxjcX8SS6r
EqS/C0ShnZqlSVyuP7xBuFUkQtZuxmZs6FQYf4zQd695rb7dt7yNh0S1QFNNquh1
+ZQ+F36hkezrmyiqk2AK0t4y0/cU09DU
-----END PUBLIC KEY-----
";
pub(super) const ED_PRIVATE: &str = "-----BEGIN PRIVATE KEY-----
MC4CAQAwBQYDK2VwBCIEIDVF49WxHHibyCJHFQUWUQXcmbVFMbdqwuZTNOGtJxl7
-----END PRIVATE KEY-----
";
pub(super) const ED_PUBLIC: &str = "-----BEGIN PUBLIC KEY-----
MCowBQYDK2VwAyEAb1YOYRTCYaUmFe4kRYDlEoCNleBfHbSqKzvdMRKcC74=
-----END PUBLIC KEY-----
";
pub(super) const RSA_1024_PUBLIC: &str = "-----BEGIN PUBLIC KEY-----
MIGfMA0GCSqGSIb3DQEBAQUAA4GNADCBiQKBgQC5B7GHbFkFOAdO8CVI/k09x5LL
yYBsU7BDUzsI1qpxxdRdEuBuE51eCVEs66yurVUDITxEWeNSbmCJb3DfzQTBtKgz
es1FEJZDs40JMn1h5M5qD+WG2UAdywjzjXoUdeOryqU6hjCOrWEe50HVrRrfJivo
av+5I+xOVQrfpPL/IwIDAQAB
-----END PUBLIC KEY-----
";
pub(super) const RSA_PUBLIC: &str = "-----BEGIN PUBLIC KEY-----
MIIBIjANBgkqhkiG9w0BAQEFAAOCAQ8AMIIBCgKCAQEAr8+abzvGl0+OQXl8e78J
daujzUQ3Hf/h/8jeFTn5WByPEERo8Ob1y5/Cu+hsSZ5gKIsnCla8+gSdSZ7FVfNV
CeRyqUbLKl6WVkzYDJKlbYcFxKfiojxtIwYL5/IS5PdkLher6rctQWbp34ijXD7a
OzCWOL/k00JF5bOtNswRK1M0jIKhSZJgy1Era4OBIuy35Xp9v7rOtpm30DPf4Aqn
BPEUqEiz/aGaVk2OXJIrdp6zbK8bX4eJ25zhSuVFgft1Es+dd6CJg5quv5OvyGnn
aAoBSu7T9+PeQxyHsF/BaTZ6RaYDznjMFwTaZ+b6HJgvu6oAjmDSX7hqa5gXrhHs
KQIDAQAB
-----END PUBLIC KEY-----
";
pub(super) const RSA_PUBLIC_PKCS1: &str = "-----BEGIN RSA PUBLIC KEY-----
MIIBCgKCAQEAr8+abzvGl0+OQXl8e78JdaujzUQ3Hf/h/8jeFTn5WByPEERo8Ob1
y5/Cu+hsSZ5gKIsnCla8+gSdSZ7FVfNVCeRyqUbLKl6WVkzYDJKlbYcFxKfiojxt
IwYL5/IS5PdkLher6rctQWbp34ijXD7aOzCWOL/k00JF5bOtNswRK1M0jIKhSZJg
y1Era4OBIuy35Xp9v7rOtpm30DPf4AqnBPEUqEiz/aGaVk2OXJIrdp6zbK8bX4eJ
25zhSuVFgft1Es+dd6CJg5quv5OvyGnnaAoBSu7T9+PeQxyHsF/BaTZ6RaYDznjM
FwTaZ+b6HJgvu6oAjmDSX7hqa5gXrhHsKQIDAQAB
-----END RSA PUBLIC KEY-----
";
// {"exp":1800000001,"sub":"alice"}, signed by `openssl dgst -sha256 -sign`.
pub(super) const RS256_TOKEN: &str = "eyJhbGciOiJSUzI1NiIsInR5cCI6IkpXVCJ9.eyJleHAiOjE4MDAwMDAwMDEsInN1YiI6ImFsaWNlIn0.QYRSTbMsR\
    -Wh78q_8LV1lee_1SmyqwfPqcYSV3ugmqj22NJkZoy6pnOF3FI7XBpFXHUmhptyRNuaXjVmBH0ZVFX2Ibn5Xuty60H\
    _2RnsfCydMg7ffqE_knefv-BOHuc_0_aat8WFtG2M4EoCodh0Epik-T1zT0w1KwbZbsp7QiFyfF40PyVElXNij8a4n\
    odoC2rJoDUut_dBBF5KTWN94uvvO3uYlukfG1LXlxikqepgoV8pbjYhBMJR7omB_PjcavcKSk_oAlTNYc65NuEdbFq\
    x6P9BXn9pOCgmuwEByaWO6nXHQi7XA-umLSA11YzWqDs_ESsRY29xqHekdL0Fyg";
pub(super) const PS256_TOKEN: &str = "eyJhbGciOiJQUzI1NiIsInR5cCI6IkpXVCJ9.eyJleHAiOjE4MDAwMDAwMDEsInN1YiI6ImFsaWNlIn0.Y_GOpHwt0\
    uBZKJUDp6kVYufZtWrQnOYQvsHS3MSGPYY6c8gNIrMuYfxvuE5bzXIejeoNXREDM3YlL2-eH6BfKhiznC1WRzYru4w\
    xg7-YcEf1AOhUF9wL9sxmeYbw1cf9T1lXojN93aldJmdlevWlYULobJkFlNq6Cqk4lA7zE9tBsarTiFnRj6NxJCCVU\
    Ymf_DohxN6jzdzbAk_1uCiiZyCOpiR9KGW-tLT3Wo-9VzwkOBMsLFhZNonD6yuev9PD7OxcaLNfmFVTBdVxr-A7GQ1\
    MhP5_YxFtLA7XU_arD66DSJj8FaNZBKR9eNNuNlLk6wc7GKYF5bU0K-Yiin3drQ";
